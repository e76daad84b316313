//! Which boot of which system this is.

/// The id of the boot; zero where there is none.
#[cfg(target_os = "linux")]
pub(super) fn id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    parse(text.trim_end()).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn id() -> [u8; 16] {
    [0; 16]
}

/// The bytes of 32 hexadecimal digits with hyphens between them.
#[cfg(target_os = "linux")]
fn parse(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u32> =
        text.chars().filter(|&c| c != '-').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8)).collect();
    bytes.try_into().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_in_the_order_of_their_text() {
        let id = parse("00010203-0405-0607-0809-0a0b0c0d0eff").unwrap();
        assert_eq!(id, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(parse("00010203"), None);
        assert_eq!(parse("no id"), None);
        assert_ne!(super::id(), [0; 16], "Linux has one");
    }
}
