//! Enums whose variants each have a description: the variants are listed once, with the constants that describe them.

/// Defines such an enum, with `COUNT`, `ALL`, `index` and `description`. A variant may have attributes, `#[cfg]`
/// among them.
macro_rules! described {
    (
        $(#[$of_enum:meta])*
        $Enum:ident: $Description:ty {
            $($(#[$of_variant:meta])* $Variant:ident = $description:expr,)+
        }
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Enum {
            $($(#[$of_variant])* $Variant,)+
        }

        #[allow(unused_doc_comments, reason = "the attributes of a variant stand at its constants too")]
        impl $Enum {
            /// How many there are.
            pub const COUNT: usize = [$($(#[$of_variant])* $Enum::$Variant,)+].len();
            /// All of them, in the order of their indices.
            pub const ALL: [$Enum; Self::COUNT] = [$($(#[$of_variant])* $Enum::$Variant,)+];

            const DESCRIPTIONS: &'static [$Description; Self::COUNT] = &[$($(#[$of_variant])* $description,)+];

            /// As an index into an array of [`Self::COUNT`].
            #[inline]
            pub const fn index(self) -> usize {
                self as usize
            }

            /// What it says of itself.
            #[inline]
            pub const fn description(self) -> &'static $Description {
                &Self::DESCRIPTIONS[self as usize]
            }
        }
    };
}

pub(super) use described;
