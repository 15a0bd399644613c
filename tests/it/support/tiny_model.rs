//! Tiny models with random weights from a fixed seed: complete files that load and run like real ones, in kilobytes.

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QTensor};
use hanzo_edge::quant::{BlockFormat, block_format_by_name};

use super::gguf_builder::{GgufBuilder, number, numbers, string, strings};

/// What to make.
#[derive(Clone)]
pub struct TinyModel {
    /// `llama` or `qwen3`.
    pub architecture: &'static str,
    /// The block format of the matrices, e.g. `q4_0`.
    pub format: &'static str,
    pub seed: u64,
    pub layers: u64,
    /// A multiple of 32; 256 or more for formats with blocks of 256.
    pub hidden: u64,
    pub heads: u64,
    pub kv_heads: u64,
    pub head_dim: u64,
    pub feed_forward: u64,
    /// Without one the file has no tokenizer at all, and `VOCAB` ids.
    pub tokenizer: bool,
    /// Whether the output matrix is the embedding.
    pub tied: bool,
}

/// Ids of a tiny model: the bytes, a few merged tokens and the control tokens, up to a multiple of 32.
pub const VOCAB: u64 = 288;

/// Pairs merged by the tokenizer, in order of rank.
const MERGES: &[&str] =
    &["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "l d", "Ġw or", "Ġwor ld", "t h", "Ġ th", "Ġth e"];

const CONTROL: &[&str] = &["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

const TEMPLATE: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] \
                        + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

impl TinyModel {
    /// The usual sizes: 2 layers, hidden 64, 4 heads, 2 kv heads of 16, feed-forward 128, tied, with a tokenizer.
    /// For formats with blocks of 256, hidden and feed-forward are 256, and the heads 64 wide.
    pub fn new(architecture: &'static str, format: &'static str, seed: u64) -> Self {
        let large = block_format_by_name(format).is_some_and(|format| format.block_len > 64);
        let (hidden, heads, kv_heads, head_dim, feed_forward) =
            if large { (256, 4, 2, 64, 256) } else { (64, 4, 2, 16, 128) };
        let (layers, tokenizer, tied) = (2, true, true);
        Self { architecture, format, seed, layers, hidden, heads, kv_heads, head_dim, feed_forward, tokenizer, tied }
    }

    /// The file, still open to changes.
    pub fn builder(&self) -> GgufBuilder {
        let mut weights =
            Weights { format: block_format_by_name(self.format).expect("a known format"), state: self.seed };
        let file = self.layers(self.metadata(), &mut weights);
        let file = weights.vector(file, "output_norm.weight", self.hidden);
        if self.tied { file } else { weights.matrix(file, "output.weight", VOCAB, self.hidden) }
    }

    /// The bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        self.builder().build()
    }

    fn metadata(&self) -> GgufBuilder {
        let key = |name: &str| format!("{}.{name}", self.architecture);
        let count = |value: u64| number(value as u32);
        let file = GgufBuilder::default()
            .field("general.architecture", string(self.architecture))
            .field("general.name", string("tiny"))
            .field(key("block_count"), count(self.layers))
            .field(key("context_length"), count(512))
            .field(key("embedding_length"), count(self.hidden))
            .field(key("feed_forward_length"), count(self.feed_forward))
            .field(key("attention.head_count"), count(self.heads))
            .field(key("attention.head_count_kv"), count(self.kv_heads))
            .field(key("attention.key_length"), count(self.head_dim))
            .field(key("attention.value_length"), count(self.head_dim))
            .field(key("attention.layer_norm_rms_epsilon"), number(1e-5f32))
            .field(key("rope.dimension_count"), count(self.head_dim))
            .field(key("rope.freq_base"), number(10_000.0f32))
            .field(key("vocab_size"), count(VOCAB));
        if self.tokenizer { with_tokenizer(file) } else { file }
    }

    fn layers(&self, file: GgufBuilder, weights: &mut Weights) -> GgufBuilder {
        let (hidden, width, kv_width) = (self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut file = weights.matrix(file, "token_embd.weight", VOCAB, hidden);
        for layer in 0..self.layers {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            file = weights.vector(file, &name("attn_norm"), hidden);
            file = weights.matrix(file, &name("attn_q"), width, hidden);
            file = weights.matrix(file, &name("attn_k"), kv_width, hidden);
            file = weights.matrix(file, &name("attn_v"), kv_width, hidden);
            if self.architecture == "qwen3" {
                file = weights.vector(file, &name("attn_q_norm"), self.head_dim);
                file = weights.vector(file, &name("attn_k_norm"), self.head_dim);
            }
            file = weights.matrix(file, &name("attn_output"), hidden, width);
            file = weights.vector(file, &name("ffn_norm"), hidden);
            file = weights.matrix(file, &name("ffn_gate"), self.feed_forward, hidden);
            file = weights.matrix(file, &name("ffn_up"), self.feed_forward, hidden);
            file = weights.matrix(file, &name("ffn_down"), hidden, self.feed_forward);
        }
        file
    }
}

/// Random weights, in the order they are asked for.
struct Weights {
    format: &'static BlockFormat,
    state: u64,
}

impl Weights {
    /// The next float in -1..1 (splitmix64).
    fn next(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn matrix(&mut self, file: GgufBuilder, name: &str, rows: u64, columns: u64) -> GgufBuilder {
        // Uniform in +-sqrt(3 / columns): outputs as large as inputs.
        let bound = (3.0 / columns as f32).sqrt();
        let values: Vec<f32> = (0..rows * columns).map(|_| self.next() * bound).collect();
        let data = self.encode(&values, bound);
        file.tensor(name, &[rows, columns], self.format.ggml_id, data)
    }

    /// The values in whole blocks of the format. Where we only decode, candle encodes; where it cannot either, the
    /// codes are random and the scales such that values stay within `bound`.
    fn encode(&mut self, values: &[f32], bound: f32) -> Vec<u8> {
        if self.format.quantize.is_some() {
            return self.format.encode(values).expect("whole blocks");
        }
        let Some(dtype) = candle_type(self.format.name) else { return self.random_blocks(values.len(), bound) };
        let tensor = candle_core::Tensor::new(values, &Device::Cpu).expect("a vector");
        QTensor::quantize(&tensor, dtype).expect("whole blocks").data().expect("in memory").into_owned()
    }

    fn random_blocks(&mut self, elements: usize, bound: f32) -> Vec<u8> {
        let scale = match self.format.name {
            // Codes reach 127.
            "iq4_nl" => half::f16::from_f32(bound / 127.0).to_le_bytes().to_vec(),
            // Values reach 6, under a power of two.
            "mxfp4" => vec![(127.0 + (bound / 6.0).log2().floor()) as u8],
            name => panic!("nothing here writes {name}"),
        };
        let codes = self.format.block_bytes - scale.len();
        let mut block = || {
            let codes = (0..codes).map(|_| (self.next() * 128.0) as i8 as u8);
            scale.iter().copied().chain(codes).collect::<Vec<u8>>()
        };
        (0..elements / 32).flat_map(|_| block()).collect()
    }

    fn vector(&mut self, file: GgufBuilder, name: &str, len: u64) -> GgufBuilder {
        let values: Vec<f32> = (0..len).map(|_| 1.0 + 0.1 * self.next()).collect();
        let format = block_format_by_name("f32").expect("a known format");
        file.tensor(name, &[len], format.ggml_id, format.encode(&values).expect("floats"))
    }
}

fn candle_type(name: &str) -> Option<GgmlDType> {
    Some(match name {
        "q2_k" => GgmlDType::Q2K,
        "q3_k" => GgmlDType::Q3K,
        "q4_k" => GgmlDType::Q4K,
        "q5_k" => GgmlDType::Q5K,
        "q6_k" => GgmlDType::Q6K,
        _ => return None,
    })
}

/// A byte-level vocabulary: one token for each byte, the merges, control tokens, unused ids.
fn with_tokenizer(file: GgufBuilder) -> GgufBuilder {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_spelling(byte).to_string()).collect();
    tokens.extend(MERGES.iter().map(|merge| merge.replace(' ', "")));
    let first_control = tokens.len();
    tokens.extend(CONTROL.iter().map(|&token| token.to_owned()));
    let first_unused = tokens.len();
    tokens.extend((first_unused..VOCAB as usize).map(|id| format!("[unused{id}]")));
    let types: Vec<i32> = (0..tokens.len())
        .map(|id| {
            if id < first_control {
                1
            } else if id < first_unused {
                3
            } else {
                5
            }
        })
        .collect();
    let control = |index: usize| number((first_control + index) as u32);
    file.field("tokenizer.ggml.model", string("gpt2"))
        .field("tokenizer.ggml.pre", string("smollm"))
        .field("tokenizer.ggml.tokens", strings(&tokens))
        .field("tokenizer.ggml.token_type", numbers(&types))
        .field("tokenizer.ggml.merges", strings(MERGES))
        .field("tokenizer.ggml.bos_token_id", control(0))
        .field("tokenizer.ggml.eos_token_id", control(2))
        .field("tokenizer.ggml.add_bos_token", number(false))
        .field("tokenizer.chat_template", string(TEMPLATE))
}

/// How byte-level vocabularies spell a byte: printable ones as themselves, the others from U+0100 on.
fn byte_spelling(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !printable(other)).count();
    char::from_u32(0x100 + before as u32).expect("below the surrogates")
}
