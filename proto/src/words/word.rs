//! The macro that makes an enum of words: text on the wire and in the database, a type in code.

/// Declares an enum with words as its variants. Every variant has a text. The macro adds the variant `Unknown`, which
/// keeps any other text, because a process must pass on a newer version's word unchanged.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
            /// A word unknown to this version, with its original text.
            Unknown(String),
        }

        impl $name {
            /// Every word known to this version.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the text on the wire and in the database.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)+
                    _ => Self::Unknown(text),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                match word {
                    $name::Unknown(text) => text,
                    known => known.as_str().to_owned(),
                }
            }
        }

        impl From<&$name> for String {
            fn from(word: &$name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        /// Words of this test.
        pub enum Colour {
            /// The colour of a rose.
            Red = "red",
            /// The colour of the sky.
            SkyBlue = "sky_blue",
        }
    }

    #[test]
    fn every_text_comes_back_as_it_was() {
        for text in ["red", "sky_blue", "mauve", ""] {
            assert_eq!(Colour::from(text).as_str(), text);
            assert_eq!(Colour::from(text.to_owned()), Colour::from(text));
            assert_eq!(String::from(Colour::from(text)), text);
            let json = serde_json::to_string(&Colour::from(text)).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(
                serde_json::from_str::<Colour>(&json).unwrap(),
                Colour::from(text)
            );
        }
        assert_eq!(Colour::from("sky_blue"), Colour::SkyBlue);
        assert_eq!(Colour::from("mauve"), Colour::Unknown("mauve".to_owned()));
        assert_eq!(Colour::ALL, [Colour::Red, Colour::SkyBlue]);
        assert_eq!(format!("[{:>4}]", Colour::Red), "[ red]");
    }
}
