//! A token allowance: deposits accumulate up to a limit.

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tokens {
    left: f64,
    most: f64,
}

impl Tokens {
    /// A full bucket.
    pub(super) fn full(most: f64) -> Tokens {
        Tokens { left: most, most }
    }

    /// An empty bucket.
    pub(super) fn empty(&mut self) {
        self.left = 0.0;
    }

    pub(super) fn add(&mut self, tokens: f64) {
        self.left = (self.left + tokens.max(0.0)).min(self.most);
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&mut self) -> bool {
        let taken = self.missing() <= 0.0;
        if taken {
            self.left = (self.left - 1.0).max(0.0);
        }
        taken
    }

    /// The amount missing for the next token.
    pub(super) fn missing(&self) -> f64 {
        // Sums of tenths end slightly below one.
        (1.0 - 1e-9 - self.left).max(0.0)
    }

    pub(super) fn is_full(&self) -> bool {
        self.left >= self.most
    }
}
