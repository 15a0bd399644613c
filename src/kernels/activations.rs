//! Activations as the coded weights meet them: integers with a scale per 32 columns, or with one scale and one zero point
//! for a whole row, and the sums that zero points and biases are multiplied with. Knows no weight.

use crate::error::{Error, Result};

/// Columns that share an activation scale.
pub const BLOCK: usize = 32;
/// Columns of the smallest group of weights.
pub(super) const HALF: usize = 16;
/// The centre of the widest codes with a scale for each 16 columns, of 6 bits. Eight codes of activations times this fit 16 bits.
pub(super) const WIDEST_CENTRE: i32 = 32;
/// Rows are padded with zeros to a multiple of this, the widest group of a layout.
const PADDING: usize = 128;
/// In place of a block: the row has no rest.
pub(super) const NO_REST: usize = usize::MAX;

/// Rows of activations as integers, `value = scale * code + shift`, in the widths that the instruction set's products read:
/// 8 bits, 16 bits, or both for weights of different widths. Buffers are kept between uses.
///
/// A few channels of a model have values many times those of the others, which take the 8 bits of their block for
/// themselves ("massive activations", Sun et al., 2024). So the rest of a row's block with the largest scale, what its codes
/// miss, is coded once more where that scale stands out, in a block at the end of the row. Half of what 8 bits lose is lost there.
#[derive(Debug, Default)]
pub struct QuantizedRows {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Columns as stored.
    pub(super) padded: usize,
    /// `|code| <= 127`; empty where nothing reads them. A row's rest lies in the block at `padded`: zeros if it has none.
    pub(super) narrow: Codes<i8>,
    /// `|code| <= 32767`; empty where nothing reads them.
    pub(super) wide: Codes<i16>,
    /// The block whose rest is coded, or [`NO_REST`], of each row; empty where there are no 8-bit codes.
    pub(super) rests: Vec<usize>,
    /// Of each 16 columns, the sums of the 8-bit codes of the first two of every four, and of the last two, times
    /// [`WIDEST_CENTRE`]; empty where nothing reads them. `[rows, stride / 16]`.
    pub(super) pairs: Vec<[i16; 2]>,
    /// Of rows with one scale and one zero point, what is added to every value of a row; else empty.
    pub(super) shifts: Vec<f32>,
}

/// What the products that read some activations want of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// Codes of 8 bits.
    pub(super) narrow: bool,
    /// Codes of 16 bits.
    pub(super) wide: bool,
    /// Sums of 8-bit codes by pairs; only beside the codes.
    pub(super) pairs: bool,
}

impl Wanted {
    /// What either wants.
    pub(super) fn or(self, other: Self) -> Self {
        Self { narrow: self.narrow || other.narrow, wide: self.wide || other.wide, pairs: self.pairs || other.pairs }
    }
}

/// The codes of all rows in one width, each row [`QuantizedRows::stride`] long.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Codes<T> {
    /// `[rows, stride]`.
    pub(super) codes: Vec<T>,
    /// `[rows, stride / 32]`.
    pub(super) scales: Vec<f32>,
    /// Sum of the values of each 32 columns, `[rows, stride / 32]`.
    pub(super) totals: Vec<f32>,
    /// Sum of the values of each 16 columns, `[rows, stride / 16]`.
    pub(super) halves: Vec<f32>,
}

/// Where products find the activations of one width; index them as [`Codes`] and [`QuantizedRows::pairs`] say, codes by bytes.
pub(super) struct ActivationPointers {
    pub(super) codes: *const u8,
    pub(super) code_bytes: usize,
    pub(super) scales: *const f32,
    pub(super) totals: *const f32,
    pub(super) halves: *const f32,
    pub(super) pairs: *const [i16; 2],
}

/// What one row is quantized from and to; lengths as in [`QuantizedRows`].
pub(super) struct QuantizeRow<'a> {
    pub(super) values: &'a [f32],
    pub(super) narrow: Option<CodesRow<'a, i8>>,
    pub(super) wide: Option<CodesRow<'a, i16>>,
    pub(super) rest: Option<&'a mut usize>,
    pub(super) pairs: Option<&'a mut [[i16; 2]]>,
    /// Where the row gets one scale and one zero point; this is what its values exceed those of the codes by.
    pub(super) shift: Option<&'a mut f32>,
}

/// One row of [`Codes`].
pub(super) struct CodesRow<'a, T> {
    pub(super) codes: &'a mut [T],
    pub(super) scales: &'a mut [f32],
    pub(super) totals: &'a mut [f32],
    pub(super) halves: &'a mut [f32],
}

/// An integer that activations are rounded to.
pub(super) trait Code: Copy + Default + Into<i32> {
    /// The largest magnitude.
    const LARGEST: f32;
    /// From an integer of at most that magnitude.
    fn new(value: i32) -> Self;
}

impl Code for i8 {
    const LARGEST: f32 = 127.0;
    #[inline(always)]
    fn new(value: i32) -> Self {
        value as Self
    }
}

impl Code for i16 {
    const LARGEST: f32 = 32_767.0;
    #[inline(always)]
    fn new(value: i32) -> Self {
        value as Self
    }
}

impl<T: Code> Codes<T> {
    /// Makes room for so many codes, a multiple of 32.
    fn reshape(&mut self, len: usize) {
        self.codes.resize(len, T::default());
        self.scales.resize(len / BLOCK, 0.0);
        self.totals.resize(len / BLOCK, 0.0);
        self.halves.resize(len / HALF, 0.0);
    }

    fn bytes(&self) -> usize {
        let floats = self.scales.capacity() + self.totals.capacity() + self.halves.capacity();
        size_of::<T>() * self.codes.capacity() + 4 * floats
    }

    /// The value of code `at`.
    fn value(&self, at: usize) -> f64 {
        f64::from(self.codes[at].into()) * f64::from(self.scales[at / BLOCK])
    }

    /// The rows, each of `stride` codes; none where there are no codes.
    fn rows(&mut self, stride: usize) -> impl Iterator<Item = CodesRow<'_, T>> {
        let scales = self.scales.chunks_exact_mut((stride / BLOCK).max(1));
        let totals = self.totals.chunks_exact_mut((stride / BLOCK).max(1));
        let halves = self.halves.chunks_exact_mut((stride / HALF).max(1));
        let codes = self.codes.chunks_exact_mut(stride.max(1));
        let sums = scales.zip(totals).zip(halves);
        codes.zip(sums).map(|(codes, ((scales, totals), halves))| CodesRow { codes, scales, totals, halves })
    }
}

impl QuantizedRows {
    /// Rows held.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns, before padding.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rests = size_of::<usize>() * self.rests.capacity();
        let sums = size_of::<[i16; 2]>() * self.pairs.capacity() + size_of::<f32>() * self.shifts.capacity();
        self.narrow.bytes() + self.wide.bytes() + rests + sums
    }

    /// The value that column `k` of row `n` stands for to weights that read 16 bits if `wide`.
    pub(super) fn value(&self, n: usize, k: usize, wide: bool) -> f64 {
        let at = n * self.stride() + k;
        let shift = self.shifts.get(n).copied().map_or(0.0, f64::from);
        if wide {
            return shift + self.wide.value(at);
        }
        let has_rest = self.rests[n] == k / BLOCK;
        let rest = if has_rest { self.narrow.value(n * self.stride() + self.padded + k % BLOCK) } else { 0.0 };
        shift + self.narrow.value(at) + rest
    }

    /// Codes from one row to the next: the columns as stored, and the rest.
    #[inline(always)]
    pub(super) fn stride(&self) -> usize {
        self.padded + BLOCK
    }

    /// Where products find the activations in 16 bits if `wide`, else in 8.
    #[inline(always)]
    pub(super) fn pointers(&self, wide: bool) -> ActivationPointers {
        #[inline(always)]
        fn of<T>(codes: &Codes<T>, pairs: &[[i16; 2]]) -> ActivationPointers {
            ActivationPointers {
                codes: codes.codes.as_ptr().cast(),
                code_bytes: size_of::<T>(),
                scales: codes.scales.as_ptr(),
                totals: codes.totals.as_ptr(),
                halves: codes.halves.as_ptr(),
                pairs: pairs.as_ptr(),
            }
        }
        if wide { of(&self.wide, &[]) } else { of(&self.narrow, &self.pairs) }
    }

    /// Makes room for `rows` rows of `columns` columns in the forms that are `wanted`; `whole` rows get one scale and one
    /// zero point.
    pub(super) fn reshape(&mut self, (rows, columns): (usize, usize), wanted: Wanted, whole: bool) {
        let padded = columns.next_multiple_of(PADDING);
        (self.rows, self.columns, self.padded) = (rows, columns, padded);
        let len = rows * self.stride();
        self.narrow.reshape(if wanted.narrow { len } else { 0 });
        self.wide.reshape(if wanted.wide { len } else { 0 });
        // Never those of other rows: they are indices.
        self.rests.clear();
        self.rests.resize(if wanted.narrow { rows } else { 0 }, NO_REST);
        self.pairs.resize(if wanted.pairs { len / HALF } else { 0 }, [0; 2]);
        self.shifts.resize(if whole { rows } else { 0 }, 0.0);
    }

    /// Whether all that is `wanted` is there.
    pub(super) fn has(&self, wanted: Wanted) -> bool {
        let len = self.rows * self.stride();
        (!wanted.narrow || self.narrow.codes.len() == len)
            && (!wanted.wide || self.wide.codes.len() == len)
            && (!wanted.pairs || self.pairs.len() == len / HALF)
    }

    /// The rows as separate jobs; `values` is `[rows, columns]`.
    ///
    /// # Errors
    /// `Internal` when `values` does not hold whole rows.
    pub(super) fn jobs<'a>(&'a mut self, values: &'a [f32]) -> Result<impl Iterator<Item = QuantizeRow<'a>>> {
        if values.len() != self.rows * self.columns {
            return Err(Error::internal(format!(
                "expected {} rows of {} activations, found {} values",
                self.rows,
                self.columns,
                values.len()
            )));
        }
        let stride = self.stride();
        let (mut narrow, mut wide) = (self.narrow.rows(stride), self.wide.rows(stride));
        let (mut rests, mut shifts) = (self.rests.iter_mut(), self.shifts.iter_mut());
        let mut pairs = self.pairs.chunks_exact_mut((stride / HALF).max(1));
        let rows = values.chunks_exact(self.columns.max(1));
        Ok(rows.map(move |values| QuantizeRow {
            values,
            narrow: narrow.next(),
            wide: wide.next(),
            rest: rests.next(),
            pairs: pairs.next(),
            shift: shifts.next(),
        }))
    }
}
