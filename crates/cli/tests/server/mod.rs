//! An HTTP server to load: it answers every request at once with two bytes.

use std::io::{Read, Write};
use std::net::TcpListener;

/// A server that answers everything, until the test ends; its URL.
pub fn server() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: std::net::TcpStream) -> std::io::Result<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(&buffer[..read]);
        while let Some(end) = request.windows(4).position(|w| w == b"\r\n\r\n") {
            request.drain(..end + 4);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        }
    }
}
