//! Checks a file before storing: the length, the media type, and whether the bytes match the type.

use super::BlobRules;

/// The default media types: the types that models read.
pub(super) const TYPES: [&str; 9] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
    "text/plain",
    "text/markdown",
    "text/csv",
    "application/json",
];

/// Why the rules refuse a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedBlob {
    /// The file has too many bytes.
    #[error("a file has at most {limit} bytes; send a smaller one")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The file is empty.
    #[error("a file must have at least one byte")]
    Empty,
    /// The media type is not allowed.
    #[error("files of type `{media_type}` are not taken; the types are {types}")]
    Type {
        /// The declared media type.
        media_type: String,
        /// The allowed media types.
        types: String,
    },
    /// The bytes do not match the declared media type.
    #[error("the bytes are not {media_type}; send the file's media type in Content-Type")]
    NotWhatItSays {
        /// The declared media type.
        media_type: String,
    },
}

/// Returns a media type without parameters, in lower case.
pub(super) fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

pub(super) fn check(media_type: &str, bytes: &[u8], rules: &BlobRules) -> Result<(), RefusedBlob> {
    if !rules.types.contains(media_type) {
        let types: Vec<_> = rules.types.iter().map(String::as_str).collect();
        return Err(RefusedBlob::Type {
            media_type: media_type.chars().take(100).collect(),
            types: types.join(", "),
        });
    }
    let limit = rules.max_bytes;
    if bytes.len() > limit {
        return Err(RefusedBlob::TooLarge { limit });
    }
    if bytes.is_empty() {
        return Err(RefusedBlob::Empty);
    }
    if !is(media_type, bytes) {
        return Err(RefusedBlob::NotWhatItSays {
            media_type: media_type.to_owned(),
        });
    }
    Ok(())
}

/// Returns true if the bytes begin like a file of the media type. A text is UTF-8 without NUL. Types from the
/// configuration are unknown here, and always pass.
fn is(media_type: &str, bytes: &[u8]) -> bool {
    match media_type {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
        "image/gif" => bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"),
        "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        "application/pdf" => bytes.starts_with(b"%PDF-"),
        text if text.starts_with("text/") || text == "application/json" => {
            !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_what_their_type_says() {
        let of = |media_type: &str, bytes: &[u8]| {
            check(&essence(media_type), bytes, &BlobRules::default())
        };
        let png = b"\x89PNG\r\n\x1a\n rest";
        assert_eq!(of("image/png", png), Ok(()));
        assert_eq!(of("Image/PNG; x=y", png), Ok(()));
        assert_eq!(of("text/plain; charset=utf-8", "grün".as_bytes()), Ok(()));
        assert_eq!(of("image/webp", b"RIFF\x01\0\0\0WEBPVP8 "), Ok(()));
        assert_eq!(of("application/pdf", b"%PDF-1.7"), Ok(()));
        for (media_type, bytes) in [
            ("image/png", b"<script>alert(1)</script>".as_slice()),
            ("image/jpeg", png),
            ("image/webp", b"RIFF"),
            ("text/plain", b"\xff\xfe"),
            ("text/csv", b"a\0b"),
            ("application/pdf", b"MZ"),
        ] {
            let refused = of(media_type, bytes).unwrap_err();
            assert!(
                matches!(refused, RefusedBlob::NotWhatItSays { .. }),
                "{media_type}"
            );
        }
        for media_type in ["text/html", "image/svg+xml", "", "application/javascript"] {
            let refused = of(media_type, b"x").unwrap_err();
            assert!(matches!(refused, RefusedBlob::Type { .. }), "{media_type}");
        }
        assert_eq!(of("text/plain", b""), Err(RefusedBlob::Empty));
        let large = vec![b'x'; BlobRules::default().max_bytes + 1];
        assert!(matches!(
            of("text/plain", &large),
            Err(RefusedBlob::TooLarge { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_what_their_type_says_or_are_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..20), begin in 0_usize..7, media_type in "\\PC{0,20}",
        ) {
            let begins: [&[u8]; 7] = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF", b"%PDF-", b"RIFF\0\0\0\0WEBP"];
            let bytes = [begins[begin], &bytes].concat();
            let rules = BlobRules::default();
            prop_assert!(check(&essence(&media_type), &bytes, &rules).is_err() || rules.types.contains(&essence(&media_type)));
            let images = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
            let fitting = images.into_iter().filter(|media_type| check(media_type, &bytes, &rules).is_ok());
            prop_assert!(fitting.count() <= 1, "a file is of one type");
            let is_text = check("text/plain", &bytes, &rules).is_ok();
            prop_assert_eq!(is_text, !bytes.is_empty() && !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok());
        }
    }
}
