//! Repeatable choices (SplitMix64).

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True in `of` percent of the calls.
    pub fn percent(&mut self, of: usize) -> bool {
        self.below(100) < of
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// Some of the items, in a random order.
    pub fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        let mut left = from.to_vec();
        let mut out = Vec::new();
        while !left.is_empty() && self.percent(65) {
            out.push(left.remove(self.below(left.len())));
        }
        out
    }
}
