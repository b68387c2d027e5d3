use proptest::prelude::*;

use super::super::encoder::push_integer;
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octets = digits.chunks(2);
    octets
        .map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap())
        .collect()
}

fn status(head: DecodedHead) -> u16 {
    head.status.expect("the block has a status")
}

/// RFC 7541 Appendix C.6: Huffman-coded answers on one connection, with a table of 256 octets,
/// so that entries are evicted.
#[test]
fn the_examples_of_the_standard_are_decoded() {
    let mut decoder = HpackDecoder {
        limit: 256,
        ..HpackDecoder::default()
    };
    let first = hex(
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e
        919d29ad171863c78f0b97c8e9ae82ae43d3",
    );
    assert_eq!(status(decoder.decode_block(&first).unwrap()), 302);
    assert_eq!(decoder.size, 222);
    let second = hex("4883640effc1c0bf");
    assert_eq!(status(decoder.decode_block(&second).unwrap()), 307);
    assert_eq!(decoder.size, 222);
    let third = hex(
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7
        821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    );
    assert_eq!(status(decoder.decode_block(&third).unwrap()), 200);
    assert_eq!((decoder.table.len(), decoder.size), (3, 215));
}

#[test]
fn a_length_is_found_by_name_and_in_the_table() {
    let mut decoder = HpackDecoder::default();
    let mut block = vec![0x88, 0x40, 14];
    block.extend_from_slice(b"content-length");
    block.extend_from_slice(&[2, b'4', b'2']);
    let head = DecodedHead {
        status: Some(200),
        content_length: Some(42),
        ..DecodedHead::default()
    };
    assert_eq!(decoder.decode_block(&block), Ok(head.clone()));
    assert_eq!(decoder.decode_block(&[0x88, 0x80 | 62]), Ok(head));
    // Name 28 of the static table, not kept.
    assert_eq!(
        decoder
            .decode_block(&[0x88, 0x0f, 13, 1, b'7'])
            .unwrap()
            .content_length,
        Some(7)
    );
    assert_eq!(decoder.table.len(), 1);
}

/// A literal that is kept: name and value as they are.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0x40, name.len() as u8];
    block.extend_from_slice(name.as_bytes());
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
    block
}

#[test]
fn a_call_is_known_by_its_content_type_and_ends_with_its_status() {
    for (value, is_grpc) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc; charset=utf-8", true),
        ("application/grpc-web", false),
        ("application/gr", false),
        ("text/html", false),
    ] {
        let mut decoder = HpackDecoder::default();
        let block = [&[0x88][..], &literal("content-type", value)].concat();
        assert_eq!(
            decoder.decode_block(&block).unwrap().is_grpc,
            is_grpc,
            "{value}"
        );
        // From the table, as the next answers of a connection have it.
        let again = decoder.decode_block(&[0x88, 0x80 | 62]).unwrap();
        assert_eq!(again.is_grpc, is_grpc, "{value}");
    }
    for (value, code) in [("0", 0), ("14", 14), ("x", 2), ("", 2), ("70000", 2)] {
        let mut decoder = HpackDecoder::default();
        let head = decoder
            .decode_block(&literal("grpc-status", value))
            .unwrap();
        assert_eq!(head.grpc_status, Some(code), "{value}");
    }
    // application/grpc as most servers send it, Huffman-coded. RFC 7541 Appendix B.
    let mut coded = vec![0x88, 0x5f, 0x8b];
    coded.extend(hex("1d75d0620d263d4c4d6564"));
    assert!(
        HpackDecoder::default()
            .decode_block(&coded)
            .unwrap()
            .is_grpc
    );
}

/// RFC 7541 Appendix C.4 and C.3: requests on one connection, and names of the static table.
#[test]
fn a_request_has_its_method_and_path_from_either_table() {
    let mut decoder = HpackDecoder::default();
    let mut request = |block: &[u8]| {
        let head = decoder.decode_block(block).unwrap();
        let text = |text: Option<Arc<[u8]>>| String::from_utf8(text.unwrap().to_vec()).unwrap();
        format!("{} {}", text(head.method), text(head.path))
    };
    assert_eq!(request(&hex("828684418cf1e3c2e5f23a6ba0ab90f4ff")), "GET /");
    assert_eq!(request(&hex("828684be5886a8eb10649cbf")), "GET /");
    assert_eq!(
        request(&hex("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf")),
        "GET /index.html"
    );
    // A path that is kept, and the same again by its number.
    let kept = [&[0x83, 0x86, 0x44, 5][..], b"/a/bc"].concat();
    assert_eq!(request(&kept), "POST /a/bc");
    assert_eq!(request(&[0x83, 0x86, 0x80 | 62]), "POST /a/bc");
    assert_eq!(
        request(&[&[0x42, 3][..], b"PUT", &[0x84]].concat()),
        "PUT /"
    );
    assert_eq!(request(&[0x80 | 62, 0x80 | 63]), "PUT /a/bc");
}

#[test]
fn a_table_grows_as_far_as_it_was_allowed_and_no_further() {
    // Updates to 64 KiB, and to one octet more.
    let (largest, larger) = (
        [&[0x3f][..], &hex("e1ff03")].concat(),
        [&[0x3f][..], &hex("e2ff03")].concat(),
    );
    let mut decoder = HpackDecoder::default();
    assert!(decoder.decode_block(&largest).is_err());
    decoder.allow_table(u32::MAX);
    assert!(decoder.decode_block(&larger).is_err());
    assert!(decoder.decode_block(&largest).is_ok());
    let value = "v".repeat(100);
    for _ in 0..50 {
        decoder.decode_block(&literal("name", &value)).unwrap();
    }
    assert_eq!(decoder.size, 50 * 136);
    // Smaller again: only the newest entry remains.
    decoder.allow_table(4096);
    decoder.decode_block(&hex("3f89013f8901")).unwrap();
    assert_eq!((decoder.limit, decoder.size), (168, 136));
}

#[test]
fn blocks_that_say_nothing_sensible_are_refused() {
    let blocks: [&[u8]; 14] = [
        // Two methods, two paths, a path that ends too early.
        &[0x82, 0x83],
        &[0x84, 0x04, 1, b'/'],
        &[0x82, 0x04, 2, b'/'],
        &[0x80],
        &[0x80 | 62],
        &[0x40],
        &[0x88, 0x88],
        &[0x48, 3, b'2', b'x', b'0'],
        &[0x48, 2, b'2', b'0'],
        &[0x48, 0],
        &[0x0f, 13, 1, b'x'],
        &[0x0f, 13, 1, b'7', 0x0f, 13, 1, b'8'],
        &[0x88, 0x20],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    for block in blocks {
        assert!(
            HpackDecoder::default().decode_block(block).is_err(),
            "{block:x?}"
        );
    }
    // The table may be made smaller, not larger than was offered.
    assert!(HpackDecoder::default().decode_block(&[0x20, 0x88]).is_ok());
    assert!(
        HpackDecoder::default()
            .decode_block(&[0x3f, 0xe2, 0x1f, 0x88])
            .is_err()
    );
}

proptest! {
    #[test]
    fn integers_come_back(value in 0usize..(1 << 28), prefix in 4u8..8) {
        let mut bytes = Vec::new();
        push_integer(&mut bytes, 0, prefix, value);
        let mut rest = bytes.as_slice();
        prop_assert_eq!(read_integer(&mut rest, prefix), Ok(value));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn no_bytes_make_it_panic_or_its_table_grow(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20),
    ) {
        let mut decoder = HpackDecoder::default();
        for block in blocks {
            let _ = decoder.decode_block(&block);
            prop_assert!(decoder.size <= TABLE_LIMIT);
            prop_assert_eq!(decoder.size, decoder.table.iter().map(DecodedField::entry_size).sum::<usize>());
        }
    }
}
