//! The answer as one paragraph, one table and one picture.

use super::{Bill, Offer, Priced};
use crate::picture::{Axis, BAD, COLOURS, GOOD, Marks, Plot, Scale, Unit};
use std::fmt::Write;

impl Priced {
    /// The answer in words: what to buy for each pattern, and what the next promise costs more.
    pub fn paragraph(&self) -> String {
        let mut out = String::new();
        let mut before: Option<&Offer> = None;
        for offer in &self.offers {
            let same = before.filter(|before| before.pattern == offer.pattern);
            let name = &offer.promise;
            match (&offer.cheapest, same.and_then(|before| before.cheapest.as_ref())) {
                (None, _) => {
                    let best = offer.bills.iter().map(|bill| bill.worst_share).fold(0.0, f64::max) * 100.0;
                    let _ = write!(
                        out,
                        "For \"{}\" no size keeps \"{name}\": at best {best:.0} % are satisfied. ",
                        offer.pattern
                    );
                }
                (Some(bill), None) => {
                    let _ = write!(out, "For \"{}\" the cheapest size that keeps \"{name}\" is ", offer.pattern);
                    let _ = write!(out, "{}. ", self.words(bill));
                }
                (Some(bill), Some(less)) if bill.size == less.size => {
                    let _ = write!(out, "The same size keeps \"{name}\". ");
                }
                (Some(bill), Some(less)) => {
                    let more = bill.per_day - less.per_day;
                    let _ = write!(out, "\"{name}\" takes {}, {more:.2} more a day. ", self.words(bill));
                }
            }
            before = Some(offer);
        }
        out.trim_end().to_owned()
    }

    fn words(&self, bill: &Bill) -> String {
        let thousand = bill.per_thousand_satisfied.unwrap_or(f64::INFINITY);
        let (size, currency) = (&self.size, &self.currency);
        format!("{size} = {} at {:.2} {currency} a day, {thousand:.2} per thousand satisfied", bill.size, bill.per_day)
    }

    /// Every size of every offer.
    pub fn table(&self) -> String {
        let mut out = String::new();
        for offer in &self.offers {
            let _ = writeln!(out, "{}, {}", offer.pattern, offer.promise);
            let _ = writeln!(
                out,
                "{:>10} {:>12} {:>14} {:>11} {:>13}",
                self.size, "per day", "per thousand", "satisfied", "worst hours"
            );
            for bill in &offer.bills {
                let thousand = bill.per_thousand_satisfied.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}"));
                let mark = if offer.cheapest.as_ref() == Some(bill) { "  buy" } else { "" };
                let _ = writeln!(
                    out,
                    "{:>10} {:>12.2} {thousand:>14} {:>9.1} % {:>11.1} %{mark}",
                    bill.size,
                    bill.per_day,
                    bill.satisfied_share * 100.0,
                    bill.worst_share * 100.0
                );
            }
        }
        out
    }

    /// Cost per thousand satisfied requests over size, one line for each offer, with the sizes to buy.
    pub fn picture(&self) -> String {
        let points = |offer: &Offer| -> Vec<(f64, f64)> {
            offer.bills.iter().filter_map(|b| Some((f64::from(b.size), b.per_thousand_satisfied?))).collect()
        };
        let all = || self.offers.iter().flat_map(points);
        let kept: Vec<(f64, f64)> = self
            .offers
            .iter()
            .filter_map(|o| o.cheapest.as_ref())
            .filter_map(|b| Some((f64::from(b.size), b.per_thousand_satisfied?)))
            .collect();
        let title = match kept.is_empty() {
            true => "No size keeps a promise".to_owned(),
            false => {
                "What a thousand satisfied requests cost; dots mark the cheapest size that keeps the promise".to_owned()
            }
        };
        let x = Axis::over(&self.size, Unit::Count, Scale::Linear, all().map(|p| p.0));
        let y = Axis::over(
            &format!("{} per thousand satisfied", self.currency),
            Unit::Money,
            Scale::Log,
            all().map(|p| p.1),
        );
        let mut plot = Plot::new(title, x, y);
        for (i, offer) in self.offers.iter().enumerate() {
            let name = format!("{}, {}", offer.pattern, offer.promise);
            let colour = COLOURS[i % COLOURS.len()];
            plot = plot.with(name, colour, Marks::Line(points(offer), i >= COLOURS.len()));
        }
        let colour = if kept.is_empty() { BAD } else { GOOD };
        plot.and(colour, Marks::Points(kept)).svg()
    }
}
