//! The shapes on which every backend's kernels are compared with the references, and the machinery of a case.
//! Inputs come from a fixed seed, so that a case is the same everywhere. Knows no backend.

use super::{Add, Attention, Embed, Gate, HeadNorm, Linear, Mul, Pairs, RmsNorm, Rope, RopeScaling, RopeTable};
use super::{Rotary, Silu, TakeRows};
use crate::error::{Context, Result};
use crate::graph::{CacheSpec, Graph, GraphBuilder, Operator, ReferenceCache, ReferenceCx, ValueId};
use crate::quant::{Codes, KvType, PackedLayout, PackedRows, unpack_rows};
use crate::shader::Caps;
use crate::tensor::Tensor;
use std::sync::Arc;

/// One input of a case.
#[derive(Debug, Clone)]
pub enum CaseInput {
    /// Activations, token ids or a table.
    Tensor(Tensor),
    /// A weight matrix in its packed layout.
    Matrix(PackedRows),
    /// A weight vector.
    Vector(Vec<f32>),
}

/// An operation on given inputs.
#[derive(Debug, Clone)]
pub struct Case {
    /// What is particular about it.
    pub name: String,
    /// The operation.
    pub op: Arc<dyn Operator>,
    /// Inputs in the operation's order.
    pub inputs: Vec<CaseInput>,
    /// Tokens of the step.
    pub tokens: usize,
    /// Rows whose logits are wanted.
    pub rows: usize,
    /// Position of the step's first token.
    pub position: usize,
    /// The cache before the step, where the operation has one.
    pub cache: Option<(CacheSpec, ReferenceCache)>,
    /// [`Caps::parallel`] of a device that is to this case what the real one is to the one that it stands for, so that
    /// the same kernels are chosen.
    pub parallel: Option<usize>,
}

/// A graph of one operation whose activations are constants, so that a backend runs a case as it runs a model.
#[derive(Debug, Clone)]
pub struct CaseGraph {
    /// The graph; its outputs are those of the operation.
    pub graph: Graph,
    /// How each weight is stored.
    pub layouts: Vec<PackedLayout>,
    /// Index into [`Case::inputs`] of each weight.
    pub weights: Vec<usize>,
}

impl Case {
    /// The capabilities by which the case's kernels are chosen on a device with `caps`.
    #[must_use]
    pub fn caps(&self, caps: Caps) -> Caps {
        Caps { parallel: self.parallel.unwrap_or(caps.parallel), ..caps }
    }

    /// The outputs by the operation's reference, over weights as they are after packing.
    pub fn reference(&self) -> Result<Vec<Tensor>> {
        let inputs = self.inputs.iter().map(CaseInput::tensor).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let mut caches: Vec<ReferenceCache> = self.cache.iter().map(|(_, cache)| cache.clone()).collect();
        let mut cx = ReferenceCx { position: self.position, rows: self.rows, caches: &mut caches };
        self.op.reference(&mut cx, &inputs).at(|| self.name.clone())
    }

    /// The case over a cache of this element type.
    #[must_use]
    pub fn with_kv_type(&self, kv_type: KvType) -> Self {
        let mut case = self.clone();
        if let Some((spec, cache)) = &mut case.cache {
            cache.kv_type = kv_type;
            for head in [&mut cache.keys, &mut cache.values]
                .into_iter()
                .flat_map(|plane| plane.chunks_mut(spec.head_dim.max(1)))
            {
                kv_type.round(head);
            }
        }
        case
    }

    /// The case as a graph.
    pub fn graph(&self) -> Result<CaseGraph> {
        let mut builder = GraphBuilder::default();
        let (mut values, mut layouts, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (index, input) in self.inputs.iter().enumerate() {
            let name = format!("input {index}");
            values.push(match input {
                CaseInput::Tensor(tensor) => builder.constant(&name, tensor.clone()),
                CaseInput::Matrix(rows) => {
                    layouts.push(rows.layout);
                    weights.push(index);
                    builder.matrix(&name, rows.rows, rows.columns)
                }
                CaseInput::Vector(vector) => {
                    layouts.push(PackedLayout::F32);
                    weights.push(index);
                    builder.vector(&name, vector.len())
                }
            });
        }
        if let Some((spec, _)) = &self.cache {
            builder.cache(*spec);
        }
        let outputs = builder.node_of(&self.name, Arc::clone(&self.op), &values)?;
        Ok(CaseGraph { graph: builder.finish(&outputs), layouts, weights })
    }
}

impl CaseInput {
    fn tensor(&self) -> Result<Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor.clone()),
            Self::Vector(vector) => Tensor::f32([vector.len()], vector.clone()),
            Self::Matrix(rows) => {
                let mut values = vec![0.0; rows.rows * rows.columns];
                unpack_rows(rows, &mut values)?;
                Tensor::f32([rows.rows, rows.columns], values)
            }
        }
    }
}

/// The error of `found` relative to the energy of `expected`: sum of squared differences over sum of squares.
/// Infinite when anything is no number.
#[must_use]
pub fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let error: f64 = found.iter().zip(expected).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let energy: f64 = expected.iter().map(|x| square(f64::from(*x))).sum();
    let nmse = if energy == 0.0 { error } else { error / energy };
    if nmse.is_finite() && found.len() == expected.len() { nmse } else { f64::INFINITY }
}

/// Pseudo-random values from a seed: a 64-bit linear congruential generator (Knuth's MMIX constants).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 32 bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A value in `-1..1`.
    pub fn signed(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / 8_388_608.0 - 1.0
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.bits() as usize % bound.max(1)
    }

    /// Values in `-1..1`.
    pub fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.signed()).collect()
    }

    fn tensor(&mut self, rows: usize, columns: usize) -> Result<CaseInput> {
        Ok(CaseInput::Tensor(Tensor::f32([rows, columns], self.values(rows * columns))?))
    }

    fn vector(&mut self, len: usize) -> CaseInput {
        CaseInput::Vector(self.values(len))
    }

    fn half(&mut self, scale: f32) -> u32 {
        u32::from(half::f16::from_f32(self.signed() * scale).to_bits())
    }

    /// A matrix of a layout with random codes and scales.
    pub fn matrix(&mut self, layout: PackedLayout, rows: usize, columns: usize) -> Result<CaseInput> {
        let mut packed = PackedRows::zeros(layout, rows, columns)?;
        let scale = 1.0 / (columns as f32).sqrt();
        match layout {
            PackedLayout::F32 => packed.low.iter_mut().for_each(|word| *word = (self.signed() * scale).to_bits()),
            PackedLayout::F16 => {
                packed.low.iter_mut().for_each(|word| *word = self.half(scale) | self.half(scale) << 16);
                if columns % 2 == 1 {
                    packed
                        .low
                        .iter_mut()
                        .skip(columns / 2)
                        .step_by(columns.div_ceil(2))
                        .for_each(|word| *word &= 0xffff);
                }
            }
            PackedLayout::Coded { codes, affine, .. } => {
                packed.low.iter_mut().chain(&mut packed.high).for_each(|word| *word = self.bits());
                let scale = scale / (1 << (codes.bits() - 1)) as f32;
                let second = if affine { scale * (1 << (codes.bits() - 1)) as f32 } else { scale };
                packed.scales.iter_mut().for_each(|word| *word = self.half(scale) | self.half(second) << 16);
            }
        }
        Ok(CaseInput::Matrix(packed))
    }
}

/// Every layout that a file's format is packed into, the affine ones of our own quantizer, and rows of 576 columns with one
/// scale.
#[must_use]
pub fn layouts() -> Vec<PackedLayout> {
    let coded = |codes, group, affine| PackedLayout::Coded { codes, group, affine };
    vec![
        PackedLayout::F32,
        PackedLayout::F16,
        coded(Codes::B2, 16, true),
        coded(Codes::B3, 16, false),
        coded(Codes::B4, 32, false),
        coded(Codes::B4, 32, true),
        coded(Codes::B5, 32, false),
        coded(Codes::B5, 32, true),
        coded(Codes::B6, 16, false),
        coded(Codes::B8, 32, false),
        coded(Codes::B2, 64, true),
        coded(Codes::B3, 64, true),
        coded(Codes::B4, 64, true),
        coded(Codes::B6, 64, true),
        coded(Codes::B8, 64, true),
        coded(Codes::B2, 32, true),
        coded(Codes::B3, 32, true),
        coded(Codes::B4, 128, true),
        coded(Codes::B6, 32, true),
        coded(Codes::B8, 32, true),
        coded(Codes::B8, 576, false),
    ]
}

fn case(name: impl Into<String>, op: impl Operator, inputs: Vec<CaseInput>, tokens: usize) -> Case {
    Case { name: name.into(), op: Arc::new(op), inputs, tokens, rows: tokens, position: 0, cache: None, parallel: None }
}

/// Every case.
pub fn cases() -> Result<Vec<Case>> {
    let mut cases = elementwise_cases()?;
    cases.extend(embed_cases()?);
    cases.extend(rms_norm_cases()?);
    cases.extend(rope_cases()?);
    cases.extend(linear_cases()?);
    cases.extend(attention_cases()?);
    Ok(cases)
}

/// Cases of `add`, `mul`, `silu` and `take_rows`.
pub fn elementwise_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(1);
    let mut cases = Vec::new();
    for (tokens, width) in [(1, 1), (3, 33), (5, 576), (64, 257)] {
        let name = |op: &str| format!("{op} {tokens}x{width}");
        let mut pair = || Ok(vec![random.tensor(tokens, width)?, random.tensor(tokens, width)?]);
        cases.push(case(name("add"), Add, pair()?, tokens));
        cases.push(case(name("mul"), Mul, pair()?, tokens));
        cases.push(case(name("silu"), Silu, pair()?.into_iter().take(1).collect(), tokens));
        for rows in [1, tokens] {
            let x = pair()?.into_iter().take(1).collect();
            cases.push(Case { rows, ..case(name("take_rows"), TakeRows, x, tokens) });
        }
    }
    // Values at which exp overflows.
    let extremes = vec![-1e4, -100.0, -88.8, -1.0, 0.0, 1.0, 88.8, 1e4];
    let extremes = CaseInput::Tensor(Tensor::f32([1, 8], extremes)?);
    cases.push(case("silu of extremes", Silu, vec![extremes], 1));
    Ok(cases)
}

/// Cases of `embed`, in every layout.
pub fn embed_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(2);
    let mut cases = Vec::new();
    let cx = |layout: PackedLayout, rows, columns, tokens: &[u32], random: &mut Random| -> Result<Case> {
        let table = random.matrix(layout, rows, columns)?;
        let ids = CaseInput::Tensor(Tensor::u32([tokens.len()], tokens.to_vec())?);
        Ok(case(format!("embed {} {rows}x{columns}", layout.name()), Embed, vec![ids, table], tokens.len()))
    };
    for layout in layouts() {
        cases.push(cx(layout, 37, layout.padded_columns(576), &[0, 36, 3, 5, 30], &mut random)?);
    }
    cases.push(cx(PackedLayout::F32, 9, 33, &[8, 1], &mut random)?);
    cases.push(cx(PackedLayout::F16, 9, 35, &[8, 1], &mut random)?);
    let b8 = PackedLayout::Coded { codes: Codes::B8, group: 32, affine: false };
    cases.push(cx(b8, 66_001, 32, &[66_000, 65_537, 0], &mut random)?);
    Ok(cases)
}

/// Cases of `rms_norm`.
pub fn rms_norm_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(3);
    let mut cases = Vec::new();
    for (tokens, width, part) in [(1, 576, 576), (5, 33, 33), (3, 192, 64), (17, 4096, 4096), (2, 6, 2)] {
        let inputs = vec![random.tensor(tokens, width)?, random.vector(part)];
        cases.push(case(format!("rms_norm {tokens}x{width} by {part}"), RmsNorm { eps: 1e-5 }, inputs, tokens));
    }
    Ok(cases)
}

fn table(head_dim: usize, capacity: usize) -> Result<CaseInput> {
    let table = RopeTable { base: 1e4, rotary_dim: head_dim, scaling: RopeScaling::None, factors: None };
    Ok(CaseInput::Tensor(table.build(capacity)?))
}

/// Cases of `rope`.
pub fn rope_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(4);
    let mut cases = Vec::new();
    for (tokens, heads, head_dim, turned) in [(1, 9, 64, 64), (5, 3, 64, 32), (17, 2, 128, 128)] {
        for pairs in [Pairs::Interleaved, Pairs::Halves] {
            let inputs = vec![random.tensor(tokens, heads * head_dim)?, table(turned, 64)?];
            let name = format!("rope {pairs:?} {tokens}x{heads}x{head_dim} of {turned}");
            cases.push(Case { position: 7, ..case(name, Rope { head_dim, pairs }, inputs, tokens) });
        }
    }
    Ok(cases)
}

/// A `linear` over matrices of `rows` rows, with all inputs that the attributes ask for.
pub fn linear_case(
    op: Linear,
    layouts: &[PackedLayout],
    rows: &[usize],
    (columns, tokens): (usize, usize),
    random: &mut Random,
) -> Result<Case> {
    let mut inputs = vec![random.tensor(tokens, columns)?];
    if op.norm.is_some() {
        inputs.push(random.vector(columns));
    }
    for (layout, rows) in layouts.iter().zip(rows) {
        inputs.push(random.matrix(*layout, *rows, columns)?);
    }
    if op.bias {
        inputs.extend(rows.iter().map(|rows| random.vector(*rows)));
    }
    if op.residual {
        inputs.push(random.tensor(tokens, rows.first().copied().unwrap_or(0))?);
    }
    let names: Vec<String> = layouts.iter().map(|layout| layout.name()).collect();
    let name = format!("linear {} {rows:?}x{columns} of {tokens} {op:?}", names.join("+"));
    Ok(case(name, op, inputs, tokens))
}

/// Cases of `linear`: every layout, awkward shapes, every fusion.
pub fn linear_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(5);
    let random = &mut random;
    let mut cases = Vec::new();
    let norm = Some(1e-6);
    let coded = |codes, group, affine| PackedLayout::Coded { codes, group, affine };
    let (q4, q6) = (coded(Codes::B4, 32, true), coded(Codes::B6, 16, false));
    for layout in layouts() {
        for tokens in [1, 3, 17] {
            cases.push(linear_case(Linear::PLAIN, &[layout], &[70], (layout.padded_columns(576), tokens), random)?);
        }
    }
    for tokens in [1, 2, 4, 5, 16, 33, 64, 65] {
        cases.push(linear_case(Linear::PLAIN, &[q4], &[129], (192, tokens), random)?);
        let qkv = Linear { n_matrices: 3, norm, bias: true, ..Linear::PLAIN };
        cases.push(linear_case(qkv, &[q4; 3], &[192, 62, 64], (576, tokens), random)?);
        cases.push(linear_case(qkv, &[q4, q4, q6], &[192, 64, 62], (576, tokens), random)?);
        let gated = Linear { n_matrices: 2, norm, gate: Some(Gate::Silu), ..Linear::PLAIN };
        cases.push(linear_case(gated, &[q4; 2], &[150, 150], (576, tokens), random)?);
        let gated = Linear { bias: true, residual: true, ..gated };
        cases.push(linear_case(gated, &[q4; 2], &[34, 34], (64, tokens), random)?);
        cases.push(linear_case(gated, &[q4, q6], &[34, 34], (64, tokens), random)?);
        let down = Linear { residual: true, ..Linear::PLAIN };
        cases.push(linear_case(down, &[q4], &[576], (1536, tokens), random)?);
    }
    for columns in [1, 30, 33, 100] {
        for tokens in [1, 5] {
            let op = Linear { norm, ..Linear::PLAIN };
            cases.push(linear_case(op, &[PackedLayout::F32], &[9], (columns, tokens), random)?);
            cases.push(linear_case(op, &[PackedLayout::F16], &[9], (columns, tokens), random)?);
        }
    }
    cases.push(linear_case(Linear::PLAIN, &[q4], &[66_001], (32, 1), random)?);
    cases.push(linear_case(Linear::PLAIN, &[PackedLayout::F32], &[2], (9728, 1), random)?);
    let pair = Linear { n_matrices: 2, ..Linear::PLAIN };
    cases.push(linear_case(pair, &[q6; 2], &[5, 7], (64, 2), random)?);
    Ok(cases)
}

/// An `attention` over a cache filled up to `position`.
pub fn attention_case(
    op: Attention,
    (tokens, position, capacity): (usize, usize, usize),
    random: &mut Random,
) -> Result<Case> {
    let (width, kv_width) = (op.n_heads * op.head_dim, op.n_kv_heads * op.head_dim);
    let mut inputs =
        vec![random.tensor(tokens, width)?, random.tensor(tokens, kv_width)?, random.tensor(tokens, kv_width)?];
    if op.norm.is_some() {
        inputs.push(random.vector(op.head_dim));
        inputs.push(random.vector(op.head_dim));
    }
    if op.rotary.is_some() {
        inputs.push(table(op.head_dim, capacity)?);
    }
    let len = op.n_kv_heads * capacity * op.head_dim;
    // Values that f16 holds exactly, so that both element types of a cache start alike.
    let mut filled = || (0..len).map(|_| (random.signed() * 64.0).round() / 64.0).collect();
    let cache = ReferenceCache { capacity, kv_type: KvType::F32, keys: filled(), values: filled() };
    let spec = CacheSpec { n_kv_heads: op.n_kv_heads, head_dim: op.head_dim };
    let name = format!("attention {tokens} at {position} of {capacity} {op:?}");
    Ok(Case { position, cache: Some((spec, cache)), ..case(name, op, inputs, tokens) })
}

/// Cases of `attention`: grouped heads, windows, positions, fused norms and rotary embeddings.
pub fn attention_cases() -> Result<Vec<Case>> {
    let mut random = Random::new(6);
    let mut cases = Vec::new();
    let plain = Attention {
        cache: 0,
        n_heads: 9,
        n_kv_heads: 3,
        head_dim: 64,
        scale: 0.125,
        window: None,
        norm: None,
        rotary: None,
    };
    let turned = |pairs| Attention { rotary: Some(Rotary { pairs }), ..plain };
    let qwen = Attention {
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 128,
        norm: Some(HeadNorm { eps: 1e-6 }),
        ..turned(Pairs::Halves)
    };
    let ops = [
        plain,
        turned(Pairs::Interleaved),
        turned(Pairs::Halves),
        qwen,
        Attention { norm: qwen.norm, ..plain },
        Attention { n_heads: 2, n_kv_heads: 2, head_dim: 80, ..plain },
        Attention { n_heads: 12, n_kv_heads: 1, head_dim: 32, ..qwen },
        Attention { n_heads: 4, n_kv_heads: 1, head_dim: 256, ..qwen },
        Attention { window: Some(20), ..turned(Pairs::Halves) },
    ];
    for op in ops {
        for (tokens, position) in [(1, 0), (1, 63), (1, 64), (1, 299), (2, 0), (5, 0), (17, 70), (64, 0), (33, 250)] {
            cases.push(attention_case(op, (tokens, position, 300), &mut random)?);
        }
    }
    Ok(cases)
}

/// `count` cases of `linear` over codes, each for one of these numbers of tokens, of random shapes and fusions.
pub fn random_linear_cases(count: usize, tokens: &[usize]) -> Result<Vec<Case>> {
    let mut random = Random::new(8);
    let layouts: Vec<PackedLayout> =
        layouts().into_iter().filter(|layout| matches!(layout, PackedLayout::Coded { .. })).collect();
    let mut cases = Vec::new();
    for _ in 0..count {
        let layout = layouts[random.below(layouts.len())];
        let columns = layout.padded_columns(1) * (1 + random.below(20));
        let edges = [1, 3, 4, 31, 33, 127, 129];
        let rows = if random.below(2) == 0 { edges[random.below(edges.len())] } else { 1 + random.below(400) };
        let gate = (random.below(3) == 0).then_some(Gate::Silu);
        let n_matrices = if gate.is_some() { 2 } else { 1 + random.below(3) };
        let op = Linear {
            n_matrices,
            norm: (random.below(2) == 0).then_some(1e-6),
            bias: random.below(3) == 0,
            gate,
            residual: (gate.is_some() || n_matrices == 1) && random.below(2) == 0,
        };
        cases.push(linear_case(
            op,
            &vec![layout; n_matrices],
            &vec![rows; n_matrices],
            (columns, tokens[random.below(tokens.len())]),
            &mut random,
        )?);
    }
    Ok(cases)
}

/// `count` cases of `attention`, each for one of these numbers of tokens, of random shapes and positions.
pub fn random_attention_cases(count: usize, tokens: &[usize]) -> Result<Vec<Case>> {
    let mut random = Random::new(9);
    let mut cases = Vec::new();
    for _ in 0..count {
        let n_kv_heads = 1 + random.below(4);
        let op = Attention {
            cache: 0,
            n_heads: n_kv_heads * (1 + random.below(9)),
            n_kv_heads,
            head_dim: [8, 12, 32, 40, 64, 96, 128, 256][random.below(8)],
            scale: 0.1,
            window: (random.below(4) == 0).then_some(1 + random.below(90)),
            norm: (random.below(2) == 0).then_some(HeadNorm { eps: 1e-6 }),
            rotary: (random.below(2) == 0).then_some(Rotary { pairs: Pairs::Halves }),
        };
        let tokens = tokens[random.below(tokens.len())];
        let capacity = tokens + [0, 63, 64, 1023, 1199][random.below(5)];
        let position = random.below(capacity - tokens + 1);
        cases.push(attention_case(op, (tokens, position, capacity), &mut random)?);
    }
    Ok(cases)
}

/// A small case of each kind of operation that a graph uses on a device with `caps`, with its attributes and layouts:
/// once for one token and once for several. Of matrix products with one token, whose kernels depend on the matrices'
/// shapes, one for each shape. For checks at load, in milliseconds.
pub fn small_cases(graph: &Graph, layouts: &[PackedLayout], caps: &Caps) -> Result<Vec<Case>> {
    let mut random = Random::new(7);
    let mut cases: Vec<Case> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for node in &graph.nodes {
        let stored: Vec<Option<PackedLayout>> = node
            .inputs
            .iter()
            .map(|input| graph.weight_of(*input).and_then(|weight| layouts.get(weight).copied()))
            .collect();
        let widths: Vec<usize> = node.inputs.iter().map(|input| graph.fact(*input).width().unwrap_or(1)).collect();
        let linear = node.op.downcast_ref::<Linear>();
        for (tokens, columns) in [(1, 256), (5, 256), (5, 512)] {
            if columns > 256 && linear.is_none_or(|op| op.gate.is_some()) {
                continue;
            }
            let case = match linear {
                Some(op) if tokens == 1 => Some(small_matvec(op, &node.inputs, graph, (&stored, caps), &mut random)?),
                _ => small_case(node.op.as_ref(), (&stored, &widths), (tokens, columns), &mut random)?,
            };
            let Some(case) = case else { continue };
            let kind = format!("{} {:?} {stored:?} {tokens} {columns} {:?}", case.name, case.op, case.parallel);
            if !seen.contains(&kind) {
                seen.push(kind);
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

/// Columns of small matrices, `columns` or more: whole groups of each layout.
fn whole_groups(layouts: &[PackedLayout], columns: usize) -> usize {
    layouts.iter().fold(columns, |columns, layout| columns.max(layout.padded_columns(columns)))
}

/// A few rows of each matrix, all of its columns, and a device that is as much smaller.
fn small_matvec(
    op: &Linear,
    inputs: &[ValueId],
    graph: &Graph,
    (stored, caps): (&[Option<PackedLayout>], &Caps),
    random: &mut Random,
) -> Result<Case> {
    let inputs = op.split(inputs)?;
    let columns = graph.fact(*inputs.x).width().unwrap_or(1);
    let weights = inputs.matrices.iter().filter_map(|matrix| graph.weights.get(graph.weight_of(*matrix)?));
    let tiles: usize = weights.map(|weight| weight.rows.div_ceil(4)).sum();
    let layouts: Vec<PackedLayout> = op.split(stored)?.matrices.iter().flatten().copied().collect();
    let rows = small_rows(op);
    let small: usize = rows.iter().map(|rows| rows.div_ceil(4)).sum();
    let case = linear_case(*op, &layouts, &rows, (columns, 1), random)?;
    Ok(Case { parallel: Some((caps.parallel * small / tiles.max(1)).max(1)), ..case })
}

/// Few rows of each matrix of a product.
fn small_rows(op: &Linear) -> Vec<usize> {
    (0..op.n_matrices).map(|i| if op.gate.is_some() { 12 } else { 12 + i }).collect()
}

/// `None` for operations that only copy.
fn small_case(
    op: &dyn Operator,
    (stored, widths): (&[Option<PackedLayout>], &[usize]),
    (tokens, columns): (usize, usize),
    random: &mut Random,
) -> Result<Option<Case>> {
    let width = widths.first().copied().unwrap_or(1);
    if let Some(op) = op.downcast_ref::<Linear>() {
        let matrices = op.split(stored)?.matrices.iter().flatten().copied().collect::<Vec<_>>();
        let columns = if width.is_multiple_of(32) { whole_groups(&matrices, columns) } else { 33 };
        return linear_case(*op, &matrices, &small_rows(op), (columns, tokens), random).map(Some);
    }
    if let Some(op) = op.downcast_ref::<Attention>() {
        return attention_case(Attention { cache: 0, ..*op }, (tokens, 70, 136), random).map(Some);
    }
    if let (Some(_), [_, Some(layout)]) = (op.downcast_ref::<Embed>(), stored) {
        let ids = CaseInput::Tensor(Tensor::u32([tokens], (0..tokens as u32).collect())?);
        let inputs = vec![ids, random.matrix(*layout, 12, whole_groups(&[*layout], 256))?];
        return Ok(Some(case(format!("embed {}", layout.name()), Embed, inputs, tokens)));
    }
    if let Some(op) = op.downcast_ref::<RmsNorm>() {
        let part = widths.get(1).copied().unwrap_or(width);
        return Ok(Some(case("rms_norm", *op, vec![random.tensor(tokens, part)?, random.vector(part)], tokens)));
    }
    if let Some(op) = op.downcast_ref::<Rope>() {
        let inputs = vec![random.tensor(tokens, 2 * op.head_dim)?, table(op.head_dim, 16)?];
        return Ok(Some(Case { position: 3, ..case("rope", *op, inputs, tokens) }));
    }
    Ok(None)
}
