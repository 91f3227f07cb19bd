//! An allowance in tokens: what is put in is for later, up to a limit.

/// Tokens that are left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tokens {
    left: f64,
    most: f64,
}

impl Tokens {
    /// As many as there may be.
    pub(super) fn full(most: f64) -> Tokens {
        Tokens { left: most, most }
    }

    /// None are left.
    pub(super) fn empty(&mut self) {
        self.left = 0.0;
    }

    pub(super) fn add(&mut self, tokens: f64) {
        self.left = (self.left + tokens.max(0.0)).min(self.most);
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self) -> bool {
        let taken = self.missing() <= 0.0;
        if taken {
            self.left = (self.left - 1.0).max(0.0);
        }
        taken
    }

    /// The missing part until one can be taken.
    pub(super) fn missing(&self) -> f64 {
        // Sums of tenths end a hair below one.
        (1.0 - 1e-9 - self.left).max(0.0)
    }

    pub(super) fn is_full(&self) -> bool {
        self.left >= self.most
    }
}
