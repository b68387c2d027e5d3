//! One connection to a stub: requests in, answers out, one after the other.
//!
//! Owns what a stub says and when; where a request ends is [`crate::request`]'s. No socket, no clock.
//! Rule: RFC 9110 section 10.1.1 (100-continue).

use std::rc::Rc;

use loadline_analysis::random::RandomStream;

use super::answers::{RenderedAnswer, StubAnswers, StubReply};
use crate::request::{MalformedRequest, RequestHead, RequestReader};

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const MALFORMED: &[u8] = b"HTTP/1.1 400 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const CLOSE: &[u8] = b"connection: close\r\n\r\n";

#[derive(Debug)]
pub(crate) struct StubProtocol {
    reader: RequestReader,
    state: StubProtocolState,
    random: RandomStream,
}

#[derive(Debug)]
enum StubProtocolState {
    Head,
    Body(RequestHead),
    Due(RequestHead, StubReply, u64),
    Over,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProtocolWant {
    Bytes,
    Time(u64),
    /// Bytes are to be sent; then it goes on, or with `true` it is over.
    Send(Vec<u8>, bool),
    Answer(Vec<u8>, u64, bool),
    End,
}

impl StubProtocol {
    pub(crate) fn new(random: RandomStream) -> Self {
        Self {
            reader: RequestReader::default(),
            state: StubProtocolState::Head,
            random,
        }
    }

    pub(crate) fn take_bytes(&mut self, bytes: &[u8]) {
        self.reader.take_bytes(bytes);
    }

    /// Whether it has no use for more bytes now: what comes waits in its socket.
    pub(crate) fn has_full_buffer(&self) -> bool {
        self.reader.has_full_buffer()
    }

    pub(crate) fn next(&mut self, now: u64, answers: &mut StubAnswers) -> ProtocolWant {
        loop {
            match std::mem::replace(&mut self.state, StubProtocolState::Over) {
                StubProtocolState::Over => return ProtocolWant::End,
                StubProtocolState::Head => match self.reader.next_head() {
                    Ok(Some(mut request)) => {
                        let waits = std::mem::take(&mut request.expects);
                        self.state = StubProtocolState::Body(request);
                        if waits {
                            return ProtocolWant::Send(CONTINUE.to_vec(), false);
                        }
                    }
                    Ok(None) => {
                        self.state = StubProtocolState::Head;
                        return ProtocolWant::Bytes;
                    }
                    Err(MalformedRequest) => return answer_malformed(answers),
                },
                StubProtocolState::Body(request) => match self.reader.skip_body() {
                    Ok(true) => {
                        let (method, path) = (&request.method, &request.path);
                        let reply = answers.reply_to(method, path, &mut self.random);
                        let due = now.saturating_add(reply.delay);
                        self.state = StubProtocolState::Due(request, reply, due);
                    }
                    Ok(false) => {
                        self.state = StubProtocolState::Body(request);
                        return ProtocolWant::Bytes;
                    }
                    Err(MalformedRequest) => return answer_malformed(answers),
                },
                StubProtocolState::Due(request, reply, due) => {
                    if due > now {
                        self.state = StubProtocolState::Due(request, reply, due);
                        return ProtocolWant::Time(due);
                    }
                    if !request.closes {
                        self.state = StubProtocolState::Head;
                    }
                    return ProtocolWant::Answer(
                        answer_bytes(&request, &reply.rendered),
                        due,
                        request.closes,
                    );
                }
            }
        }
    }
}

fn answer_malformed(answers: &mut StubAnswers) -> ProtocolWant {
    answers.count_malformed();
    ProtocolWant::Send(MALFORMED.to_vec(), true)
}

fn answer_bytes(request: &RequestHead, rendered: &Rc<RenderedAnswer>) -> Vec<u8> {
    let end = if request.method == b"HEAD" {
        rendered.head + 2
    } else {
        rendered.bytes.len()
    };
    if !request.closes {
        rendered.bytes[..end].to_vec()
    } else {
        [
            &rendered.bytes[..rendered.head],
            CLOSE,
            &rendered.bytes[rendered.head + 2..end],
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_load::response::MAX_HEAD;

    use super::super::{StubAnswer, StubBody};
    use super::*;
    use crate::delay::Delay;

    fn answers() -> StubAnswers {
        let answer = |pattern: &str, ms| StubAnswer {
            pattern: pattern.parse().expect("a pattern"),
            weight: 1.0,
            status: 200,
            headers: [].into(),
            body: StubBody::Text("hi".to_owned()),
            delay: Some(Delay::Fixed {
                latency: Duration::from_millis(ms),
            }),
        };
        StubAnswers::new(&[answer("* /a", 0), answer("* /slow", 20)]).expect("they are good")
    }

    fn said(bytes: &[u8]) -> (Vec<String>, ProtocolWant) {
        let mut session = StubProtocol::new(RandomStream::from_seed(1));
        let mut answers = answers();
        session.take_bytes(bytes);
        let mut all = Vec::new();
        loop {
            match session.next(1000, &mut answers) {
                ProtocolWant::Send(bytes, _) | ProtocolWant::Answer(bytes, ..) => {
                    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "|");
                    all.push(text);
                }
                want => return (all, want),
            }
        }
    }

    const HI: &str = "HTTP/1.1 200 |content-length: 2||hi";

    #[test]
    fn requests_are_answered_one_after_the_other_with_their_bodies_read() {
        let get = "GET /a HTTP/1.1\r\nhost: x\r\n\r\n";
        let post = "POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc";
        let chunks = "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let head = "HEAD /a HTTP/1.1\r\n\r\n";
        let (all, want) = said([get, post, chunks, head, "GET /a HT"].concat().as_bytes());
        assert_eq!(all, [HI, HI, HI, "HTTP/1.1 200 |content-length: 2||"]);
        assert_eq!(want, ProtocolWant::Bytes);
    }

    #[test]
    fn bytes_may_come_one_by_one() {
        let text = "POST /a HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET /a HTTP/1.1\r\n\r\n";
        let mut session = StubProtocol::new(RandomStream::from_seed(1));
        let mut answers = answers();
        let mut sent = 0;
        for byte in text.as_bytes() {
            session.take_bytes(&[*byte]);
            while let ProtocolWant::Answer(..) = session.next(1, &mut answers) {
                sent += 1;
            }
        }
        assert_eq!((sent, answers.requests), (2, 2));
    }

    #[test]
    fn an_answer_waits_for_its_time_and_the_next_request_for_it() {
        let mut session = StubProtocol::new(RandomStream::from_seed(1));
        let mut answers = answers();
        session.take_bytes(b"GET /slow HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\n");
        let due = 1000 + 20_000_000;
        assert_eq!(session.next(1000, &mut answers), ProtocolWant::Time(due));
        assert_eq!(session.next(due - 1, &mut answers), ProtocolWant::Time(due));
        let ProtocolWant::Answer(_, at, false) = session.next(due + 5, &mut answers) else {
            panic!("it is due");
        };
        assert_eq!(at, due);
        let ProtocolWant::Answer(_, at, false) = session.next(due + 9, &mut answers) else {
            panic!("it is due");
        };
        assert_eq!(at, due + 9);
    }

    #[test]
    fn who_says_close_or_speaks_an_older_version_is_closed() {
        let closes = "HTTP/1.1 200 |content-length: 2|connection: close||hi";
        for text in [
            "GET /a HTTP/1.1\r\nConnection: close\r\n\r\nGET /a HTTP/1.1\r\n\r\n",
            "GET /a HTTP/1.0\r\n\r\n",
            "GET http://prices:81/a HTTP/1.1\r\nConnection: x, Close\r\n\r\n",
        ] {
            assert_eq!(
                said(text.as_bytes()),
                (vec![closes.to_owned()], ProtocolWant::End)
            );
        }
        let kept = "GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
        assert_eq!(
            said(kept.as_bytes()),
            (vec![HI.to_owned()], ProtocolWant::Bytes)
        );
    }

    #[test]
    fn who_waits_to_be_told_to_go_on_is_told() {
        let text = "POST /a HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\nx";
        let (all, _) = said(text.as_bytes());
        assert_eq!(all, ["HTTP/1.1 100 Continue||", HI]);
    }

    #[test]
    fn what_is_no_request_ends_the_connection() {
        let endless = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD));
        for text in [
            "\x16\x03\x01 TLS",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "POST /a HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            "PUT /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            &endless,
        ] {
            let (all, want) = said(text.as_bytes());
            assert!(
                all.last().is_some_and(|last| last.contains(" 400 ")),
                "{text:.20}"
            );
            assert_eq!(want, ProtocolWant::End, "{text:.20}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_loop(bytes in proptest::collection::vec(0_u8.., 0..400), cut in 0_usize..60) {
            let good = b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
            said(&[&good[..cut], &bytes].concat());
        }
    }
}
