//! The result as one paragraph, one table and one picture.

use super::{Bill, Machine, Offer, PricedPlan, ServiceModel};
use meridian_lab_results::picture::{Axis, COLOURS, Marks, Plot, QUIET, Scale, Unit, stacked};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Colour of the sizes to buy, unlike any line.
const MARK: &str = "#000000";

impl PricedPlan {
    /// Returns the result as text: what to buy for each pattern, and the extra cost of the next promise.
    pub fn paragraph(&self) -> String {
        let mut out = self.machine.as_ref().map_or_else(String::new, |machine| format!("{} ", words(machine)));
        out += &self.beyond();
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
                    let _ = write!(out, "\"{name}\" takes {}, {} more a day. ", self.words(bill), money(more));
                }
            }
            before = Some(offer);
        }
        out.trim_end().to_owned()
    }

    /// Lists the sizes whose load would exceed the measurements.
    fn beyond(&self) -> String {
        let Some(machine) = &self.machine else { return String::new() };
        let bills = self.offers.iter().flat_map(|offer| &offer.bills).filter(|bill| bill.beyond_measured);
        let sizes: BTreeSet<u64> = bills.map(|bill| bill.size).collect();
        if sizes.is_empty() {
            return String::new();
        }
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        format!(
            "With {} = {} a machine is asked for more than the {:.1} a second that were measured: of that nothing is known, and \
             it counts as not kept. ",
            self.size,
            sizes.join(", "),
            machine.rate_most
        )
    }

    fn words(&self, bill: &Bill) -> String {
        let (size, currency, day) = (&self.size, &self.currency, money(bill.per_day));
        let thousand = bill.per_thousand_satisfied.map_or_else(|| "none".to_owned(), money);
        format!("{size} = {} at {day} {currency} a day, {thousand} per thousand satisfied", bill.size)
    }

    /// Returns a table of every size of every offer.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let wide = self.size.len().max(10);
        for offer in &self.offers {
            let _ = writeln!(out, "{}, {}", offer.pattern, offer.promise);
            let head = ["per day", "per thousand", "satisfied", "worst hours"];
            let _ =
                writeln!(out, "{:>wide$} {:>12} {:>14} {:>11} {:>13}", self.size, head[0], head[1], head[2], head[3]);
            for bill in &offer.bills {
                let thousand = bill.per_thousand_satisfied.map_or_else(|| "-".to_owned(), money);
                let mark = match (offer.cheapest.as_ref() == Some(bill), bill.beyond_measured) {
                    (true, _) => "  buy",
                    (false, true) => "  not measured",
                    (false, false) => "",
                };
                let _ = writeln!(
                    out,
                    "{:>wide$} {:>12} {thousand:>14} {:>9.1} % {:>11.1} %{mark}",
                    bill.size,
                    money(bill.per_day),
                    bill.satisfied_share * 100.0,
                    bill.worst_share * 100.0
                );
            }
        }
        out
    }

    /// Plots the cost per thousand satisfied requests over size, one line per offer, with the sizes to buy. Above it is
    /// the machine, if one was measured.
    pub fn picture(&self) -> String {
        match &self.machine {
            Some(machine) => stacked(&[curve(machine), self.costs()]),
            None => self.costs().svg(),
        }
    }

    fn costs(&self) -> Plot {
        let points = |offer: &Offer| -> Vec<(f64, f64)> {
            offer.bills.iter().filter_map(|b| Some((b.size as f64, b.per_thousand_satisfied?))).collect()
        };
        let all = || self.offers.iter().flat_map(points);
        let kept: Vec<(f64, f64)> = self
            .offers
            .iter()
            .filter_map(|o| o.cheapest.as_ref())
            .filter_map(|b| Some((b.size as f64, b.per_thousand_satisfied?)))
            .collect();
        let title = match kept.is_empty() {
            true => "No size keeps a promise".to_owned(),
            false => "Cost of a thousand satisfied requests".to_owned(),
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
        plot.with("cheapest that keeps its promise", MARK, Marks::Points(kept))
    }
}

/// Formats money as people write it: cents, or three digits for less.
fn money(sum: f64) -> String {
    match sum.abs() {
        small if small > 0.0 && small < 0.1 => {
            let decimals = (2.0 - small.log10().floor()).min(12.0) as usize;
            format!("{sum:.decimals$}")
        }
        _ => format!("{sum:.2}"),
    }
}

/// Returns the measured capacity of one machine.
fn words(machine: &Machine) -> String {
    let (law, most) = (&machine.law, machine.users_most);
    let mut text = format!(
        "Measured at up to {most:.0} users, a machine answers at most {:.1} requests a second. ",
        machine.rate_most
    );
    text += &law.words();
    text += &match machine.serves {
        ServiceModel::Workers(workers) => {
            format!(" Simulated requests arrive at random at {workers} workers with the measured service times.")
        }
        ServiceModel::Shared => {
            " Simulated requests arrive at random, each as fast as measured at that concurrency.".to_owned()
        }
    };
    if !law.fits() {
        return text;
    }
    text += &match law.peak_n.filter(|n| *n < most) {
        Some(n) => format!(" By it one user has {:.1} a second, and throughput has its peak at {n:.0} users.", law.g),
        None => format!(" By it one user has {:.1} a second, and throughput still rose at {most:.0} users.", law.g),
    };
    text
}

/// Plots throughput over users: the measurements, and the law through them.
fn curve(machine: &Machine) -> Plot {
    let (law, most) = (&machine.law, machine.users_most);
    let measured: Vec<(f64, f64)> = law.measured().collect();
    let fitted: Vec<(f64, f64)> =
        (0..=200).map(|i| 1.0 + (most - 1.0) * f64::from(i) / 200.0).map(|n| (n, law.throughput(n))).collect();
    let x = Axis::over("users", Unit::Whole, Scale::Linear, fitted.iter().map(|p| p.0));
    let y =
        Axis::over("sound answers a second", Unit::Count, Scale::Linear, measured.iter().chain(&fitted).map(|p| p.1));
    let mut plot = Plot::new("Throughput of one machine over its users", x, y)
        .with(law.name(), COLOURS[0], Marks::Line(fitted, !law.fits()))
        .with("measured", COLOURS[1], Marks::Points(measured));
    if let Some(peak) = law.peak_n.filter(|n| *n <= most && law.fits()) {
        plot = plot.and(QUIET, Marks::Upright(peak, "peak".to_owned()));
    }
    plot
}
