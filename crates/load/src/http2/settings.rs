//! SETTINGS of both sides (RFC 9113 §6.5).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Http2Violation;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Http2Settings {
    pub table_size: Option<u32>,
    pub max_streams: Option<u32>,
    /// Octets that may be sent on a new stream before a WINDOW_UPDATE.
    pub initial_window: Option<u32>,
    pub max_frame: Option<u32>,
}

impl Http2Settings {
    /// Reads the header `HTTP2-Settings` of a request for an upgrade (RFC 7540 §3.2.1).
    pub fn parse_upgrade_header(value: &str) -> Option<Self> {
        let payload = URL_SAFE_NO_PAD.decode(value.trim_end_matches('=')).ok()?;
        Self::parse_settings(&payload, true).ok()
    }

    /// Reads a payload; unknown settings are passed over.
    pub(super) fn parse_settings(
        payload: &[u8],
        is_from_client: bool,
    ) -> Result<Self, Http2Violation> {
        let mut settings = Self::default();
        let (pairs, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Http2Violation::FrameSize);
        }
        for [a, b, value @ ..] in pairs {
            let value = u32::from_be_bytes(*value);
            match u16::from_be_bytes([*a, *b]) {
                HEADER_TABLE_SIZE => settings.table_size = Some(value),
                // A server must not send anything but 0.
                ENABLE_PUSH if value > u32::from(is_from_client) => {
                    return Err(Http2Violation::Protocol);
                }
                MAX_CONCURRENT_STREAMS => settings.max_streams = Some(value),
                INITIAL_WINDOW_SIZE if value > MAX_WINDOW => return Err(Http2Violation::Protocol),
                INITIAL_WINDOW_SIZE => settings.initial_window = Some(value),
                MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Http2Violation::Protocol);
                }
                MAX_FRAME_SIZE => settings.max_frame = Some(value),
                _ => {}
            }
        }
        Ok(settings)
    }
}

/// Payload of the first frame of this side: no push, and windows so large that the answer is
/// held up by TCP alone, as browsers do within reason and h2load does.
pub(super) fn own_settings() -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..2].copy_from_slice(&ENABLE_PUSH.to_be_bytes());
    payload[6..8].copy_from_slice(&INITIAL_WINDOW_SIZE.to_be_bytes());
    payload[8..].copy_from_slice(&MAX_WINDOW.to_be_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_wrong_ones_refused() {
        let read = |payload: &[u8]| Http2Settings::parse_settings(payload, false);
        let some = read(&[0, 3, 0, 0, 0, 100, 0, 9, 1, 1, 1, 1]).unwrap();
        assert_eq!(some.max_streams, Some(100));
        assert_eq!(
            read(&own_settings()).unwrap().initial_window,
            Some(MAX_WINDOW)
        );
        let push = |value| Http2Settings::parse_settings(&[0, 2, 0, 0, 0, value], true);
        assert!(push(1).is_ok() && push(2).is_err());
        for wrong in [
            &[0, 3, 0][..],
            &[0, 2, 0, 0, 0, 1],
            &[0, 4, 0x80, 0, 0, 0],
            &[0, 5, 0, 0, 0, 1],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
