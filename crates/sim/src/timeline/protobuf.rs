//! The wire format of protocol buffers, as far as a trace needs it: varints, fixed numbers of 64 bits, texts and
//! messages.

/// A message being written.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// A field of type `uint64`, `uint32`, `int64` (not negative), `bool` or an enum.
    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, 0);
        self.varint(value);
        self
    }

    /// A field of type `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, 1);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    /// A field of type `string`.
    pub fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.delimited(field, text.as_bytes())
    }

    /// A field that is a message itself.
    pub fn message(&mut self, field: u32, message: &Buffer) -> &mut Self {
        self.delimited(field, &message.bytes)
    }

    /// What has been written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn delimited(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn key(&mut self, field: u32, wire_type: u64) {
        self.varint(u64::from(field) << 3 | wire_type);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
