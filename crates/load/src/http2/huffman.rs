//! The Huffman code of header values: decoding only; requests are sent in plain octets.
//!
//! Source: RFC 7541 Appendix B. The code is canonical, so the lengths of its codes define it.

use super::Http2Violation;

/// Length in bits of the code of each octet, and of EOS (256).
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const EOS: u16 = 256;
const LONGEST: usize = 30;

struct HuffmanCode {
    /// Symbols by the length of their code, then by value.
    symbols: [u16; 257],
    /// First code of each length, and the index of its symbol in `symbols`.
    first: [u32; LONGEST + 1],
    offset: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    short: [(u8, u8); 256],
}

static CODE: HuffmanCode = build_code();

const fn build_code() -> HuffmanCode {
    let mut code = HuffmanCode {
        symbols: [0; 257],
        first: [0; LONGEST + 1],
        offset: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        short: [(0, 0); 256],
    };
    let mut next = 0;
    let mut placed = 0;
    let mut length = 1;
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = next;
        code.offset[length] = placed;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[placed as usize] = symbol as u16;
                if length <= 8 {
                    let from = (next << (8 - length)) as usize;
                    let mut byte = from;
                    while byte < from + (1 << (8 - length)) {
                        code.short[byte] = (symbol as u8, length as u8);
                        byte += 1;
                    }
                }
                placed += 1;
                next += 1;
                code.count[length] += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    code
}

/// Hands every octet of a coded text to `each`.
/// Errors: [`Http2Violation::Compression`] for a code that is none or wrong padding (RFC 7541
/// §5.2).
pub(super) fn decode_huffman(
    coded: &[u8],
    each: &mut impl FnMut(u8),
) -> Result<(), Http2Violation> {
    let mut rest = coded.iter();
    // The next bits, left-aligned, and how many there are.
    let (mut window, mut bits) = (0u64, 0usize);
    loop {
        while bits <= 56 {
            let Some(byte) = rest.next() else { break };
            window |= u64::from(*byte) << (56 - bits);
            bits += 8;
        }
        let (symbol, length) = match CODE.short[(window >> 56) as usize] {
            (_, 0) => find_long_symbol(window).ok_or(Http2Violation::Compression)?,
            (symbol, length) => (u16::from(symbol), usize::from(length)),
        };
        if length > bits {
            // The remainder is padding: fewer than 8 bits, all ones.
            let is_padding = bits < 8 && window.leading_ones() as usize >= bits;
            return is_padding.then_some(()).ok_or(Http2Violation::Compression);
        }
        if symbol == EOS {
            return Err(Http2Violation::Compression);
        }
        each(symbol as u8);
        window <<= length;
        bits -= length;
    }
}

fn find_long_symbol(window: u64) -> Option<(u16, usize)> {
    (9..=LONGEST).find_map(|length| {
        let code = (window >> (64 - length)) as u32;
        let nth = code.checked_sub(CODE.first[length])?;
        let at = CODE.offset[length] + nth;
        (nth < CODE.count[length]).then(|| (CODE.symbols[at as usize], length))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, Http2Violation> {
        let mut out = Vec::new();
        decode_huffman(coded, &mut |octet| out.push(octet)).map(|()| out)
    }

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for octet in text {
            let length = usize::from(LENGTHS[usize::from(*octet)]);
            let at = CODE.symbols.iter().position(|s| *s == u16::from(*octet));
            let nth = at.expect("every octet has a code") as u32 - CODE.offset[length];
            bits += &format!("{:0length$b}", CODE.first[length] + nth);
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        let octets = bits.as_bytes().chunks(8);
        octets
            .map(|o| u8::from_str_radix(std::str::from_utf8(o).unwrap(), 2).unwrap())
            .collect()
    }

    /// Texts of RFC 7541 Appendix C.4 and C.6.
    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        let examples: [(&[u8], &str); 4] = [
            (
                &[
                    0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
                ],
                "www.example.com",
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x64, 0x02], "302"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], "private"),
        ];
        for (code, text) in examples {
            assert_eq!(decoded(code).unwrap(), text.as_bytes());
            assert_eq!(coded(text.as_bytes()), code);
        }
    }

    #[test]
    fn wrong_padding_and_the_end_symbol_are_refused() {
        assert_eq!(decoded(&[]).unwrap(), b"");
        // `0` is 00000: padded by zeros, by a whole byte, by EOS itself.
        for code in [&[0x00][..], &[0x07, 0xff], &[0xff, 0xff, 0xff, 0xff]] {
            assert!(decoded(code).is_err(), "{code:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(decoded(&coded(&text)).unwrap(), text);
        }

        #[test]
        fn no_bytes_make_it_panic(code in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decoded(&code);
        }
    }
}
