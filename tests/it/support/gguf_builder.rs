//! Writes GGUF files for tests, right or wrong ones: it checks nothing. Knows no architecture and no crate of ours.

/// A metadata value as GGUF stores it: its type number and its bytes.
#[derive(Clone)]
pub struct Field {
    pub kind: u32,
    pub bytes: Vec<u8>,
}

/// Numbers that GGUF has a type for.
pub trait Number: Copy {
    const KIND: u32;
    fn bytes(self) -> Vec<u8>;
}

macro_rules! numbers {
    ($($type:ty = $kind:literal),*) => { $(
        impl Number for $type {
            const KIND: u32 = $kind;
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )* };
}

numbers!(u8 = 0, i8 = 1, u16 = 2, i16 = 3, u32 = 4, i32 = 5, f32 = 6, u64 = 10, i64 = 11, f64 = 12);

impl Number for bool {
    const KIND: u32 = 7;
    fn bytes(self) -> Vec<u8> {
        vec![self.into()]
    }
}

/// A number.
pub fn number<T: Number>(value: T) -> Field {
    Field { kind: T::KIND, bytes: value.bytes() }
}

/// A string.
pub fn string(text: impl AsRef<[u8]>) -> Field {
    Field { kind: 8, bytes: counted(text.as_ref()) }
}

/// A list of numbers.
pub fn numbers<T: Number>(values: &[T]) -> Field {
    list(T::KIND, values.len() as u64, values.iter().flat_map(|value| value.bytes()).collect())
}

/// A list of strings.
pub fn strings<S: AsRef<[u8]>>(values: &[S]) -> Field {
    list(8, values.len() as u64, values.iter().flat_map(|value| counted(value.as_ref())).collect())
}

/// A list that claims to have `count` elements of type `kind`.
pub fn list(kind: u32, count: u64, elements: Vec<u8>) -> Field {
    let bytes = [kind.to_le_bytes().as_slice(), &count.to_le_bytes(), &elements].concat();
    Field { kind: 9, bytes }
}

/// A length and the bytes.
pub fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes(), bytes].concat()
}

/// A row of the tensor table and its data.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    /// As GGUF writes them: the contiguous axis first.
    pub dims: Vec<u64>,
    pub kind: u32,
    /// Where its data begins; `None` puts it after the data before it.
    pub offset: Option<u64>,
    pub data: Vec<u8>,
}

/// A file in the making.
#[derive(Clone)]
pub struct GgufBuilder {
    pub version: u32,
    pub alignment: usize,
    pub fields: Vec<(Vec<u8>, Field)>,
    pub tensors: Vec<Tensor>,
    /// What the header claims instead of the true counts of tensors and of fields.
    pub claimed: Option<(u64, u64)>,
}

impl Default for GgufBuilder {
    fn default() -> Self {
        Self { version: 3, alignment: 32, fields: Vec::new(), tensors: Vec::new(), claimed: None }
    }
}

impl GgufBuilder {
    /// Adds metadata.
    pub fn field(mut self, key: impl AsRef<[u8]>, field: Field) -> Self {
        self.fields.push((key.as_ref().to_vec(), field));
        self
    }

    /// Adds a tensor; `shape` is outermost first, as in code.
    pub fn tensor(mut self, name: impl Into<String>, shape: &[u64], kind: u32, data: Vec<u8>) -> Self {
        let dims = shape.iter().rev().copied().collect();
        self.tensors.push(Tensor { name: name.into(), dims, kind, offset: None, data });
        self
    }

    /// Replaces the value of a field.
    pub fn replace(mut self, key: &str, field: Field) -> Self {
        for (held, value) in &mut self.fields {
            if held == key.as_bytes() {
                *value = field.clone();
            }
        }
        self
    }

    /// The file.
    pub fn build(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        let (n_tensors, n_fields) = self.claimed.unwrap_or((self.tensors.len() as u64, self.fields.len() as u64));
        file.extend(self.version.to_le_bytes());
        file.extend(n_tensors.to_le_bytes());
        file.extend(n_fields.to_le_bytes());
        for (key, field) in &self.fields {
            file.extend(counted(key));
            file.extend(field.kind.to_le_bytes());
            file.extend(&field.bytes);
        }
        let mut data: Vec<u8> = Vec::new();
        for tensor in &self.tensors {
            let start = data.len().next_multiple_of(self.alignment);
            data.resize(start, 0);
            data.extend(&tensor.data);
            file.extend(counted(tensor.name.as_bytes()));
            file.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in &tensor.dims {
                file.extend(dim.to_le_bytes());
            }
            file.extend(tensor.kind.to_le_bytes());
            file.extend(tensor.offset.unwrap_or(start as u64).to_le_bytes());
        }
        if !data.is_empty() {
            file.resize(file.len().next_multiple_of(self.alignment), 0);
        }
        file.extend(data);
        file
    }

    /// The same model in `count` files, in order, with the tensors spread over them.
    pub fn split(&self, count: u16) -> Vec<Self> {
        let per_part = self.tensors.len().div_ceil(usize::from(count));
        let part = |part: u16| {
            let fields = if part == 0 { self.fields.clone() } else { Vec::new() };
            let tensors = self.tensors.iter().skip(usize::from(part) * per_part).take(per_part).cloned().collect();
            Self { fields, tensors, ..self.clone() }
                .field("split.no", number(part))
                .field("split.count", number(count))
                .field("split.tensors.count", number(self.tensors.len() as i32))
        };
        (0..count).map(part).collect()
    }
}
