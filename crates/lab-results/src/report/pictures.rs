//! The pictures of a report.

use super::captioned::{Picture, time_axis};
use super::digest::{CLASSES_PER_DECADE, Digest, Heat, Series, Subsample, TimeLine};
use super::words::series_name;
use crate::folder::{Run, Sample};
use crate::picture::{Axis, BAD, COLOURS, GOOD, Marks, Plot, QUIET, Scale, Unit, label};
use crate::record::{Outcome, Phase};
use crate::stats::Estimate;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Max points drawn of a scatter, over all its series: more cannot be distinguished by eye and enlarge the page.
const DRAWN_MAX: usize = 2_000;

/// Returns all pictures for which there are records or samples.
pub(super) fn all(run: &Run, digest: &Digest, samples: &[Sample]) -> Vec<Picture> {
    let mut pictures: Vec<Picture> =
        digest.lines.iter().map(|line| requests(&names(run, digest, line), line.1)).collect();
    pictures.extend(percentiles(run, digest));
    pictures.extend(super::modes::modes(run, digest));
    pictures.extend(digest.lines.iter().filter_map(|line| heat(&names(run, digest, line), digest, line.1)));
    pictures.extend(flow(run, digest));
    pictures.extend(firsts_and_lasts(run, digest));
    pictures.extend(scatter(
        run,
        digest,
        "concurrency",
        "requests in flight when it was sent",
        Unit::Whole,
        |series| &series.by_concurrency,
    ));
    pictures.extend(scatter(run, digest, "size", "results in the answer", Unit::Whole, |series| &series.by_results));
    pictures.extend(sampled(samples));
    pictures
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn latency_axis(title: &str, values: impl Iterator<Item = f64>) -> Axis {
    Axis::over(title, Unit::Micros, Scale::Log, values)
}

/// Suffixes for the pictures of one series.
struct Names {
    /// Suffix of the file name.
    file: String,
    /// Suffix of the title.
    title: String,
    /// Suffix of the caption: the trial.
    trial: String,
}

fn names(run: &Run, digest: &Digest, (key, line): (&(u16, u16), &TimeLine)) -> Names {
    let several = digest.lines.len() > 1;
    Names {
        file: if several { format!("-{}-{}", key.0, key.1) } else { String::new() },
        title: if several { format!(": {}", series_name(run, *key)) } else { String::new() },
        trial: if run.trials.len() > 1 { format!(" This is trial {}.", line.trial + 1) } else { String::new() },
    }
}

/// Draws each request as a bar: waiting to be sent, waiting for the first result, receiving.
fn requests(names: &Names, line: &TimeLine) -> Picture {
    let bars = &line.bars.kept;
    let y = Axis::over("number of the request", Unit::Whole, Scale::Linear, bars.iter().map(|bar| bar.n + 1.0));
    let x = time_axis(bars.iter().map(|bar| bar.done));
    // Scaled for at least 40 bars, so that a few requests do not fill the picture.
    let height = (y.range.1 - y.range.0) / bars.len().max(40) as f64 * 0.7;
    let rows = |from: fn(&super::digest::Bar) -> f64, to: fn(&super::digest::Bar) -> f64, of: fn(Outcome) -> bool| {
        let chosen = bars.iter().filter(|bar| of(bar.outcome) && to(bar) > from(bar));
        Marks::Boxes(chosen.map(|bar| (from(bar), bar.n - height / 2.0, to(bar), bar.n + height / 2.0)).collect())
    };
    let good = |outcome| outcome == Outcome::Sound;
    let shown = share_shown(&line.bars);
    let plot = Plot::new(format!("Each request as a bar{}{shown}", names.title), x, y)
        .with("not yet sent", QUIET, rows(|bar| bar.intended, |bar| bar.sent, |_| true))
        .with("until the first result", "#56b4e9", rows(|bar| bar.sent, |bar| bar.first.unwrap_or(bar.done), good))
        .with("receiving", "#0072b2", rows(|bar| bar.first.unwrap_or(bar.done), |bar| bar.done, good))
        .with("not sound", BAD, rows(|bar| bar.sent, |bar| bar.done, |outcome| outcome != Outcome::Sound));
    let caption = "A bar runs from the intended time of the request to the end of its answer. Bars of one length mean a service without \
                   a queue; growing bars mean a queue.";
    Picture { name: format!("requests{}", names.file), caption: format!("{caption}{}", names.trial), plot }
}

/// Returns points as one of `clouds` clouds of a picture, and its name with the share of the points drawn.
fn cloud(name: String, points: &Subsample<(f64, f64)>, clouds: usize) -> (String, Marks) {
    let step = points.kept.len().div_ceil((DRAWN_MAX / clouds.max(1)).max(1)).max(1);
    let marks = Marks::Points(points.kept.iter().step_by(step).copied().collect());
    match points.step() * step as u64 {
        1 => (name, marks),
        of => (format!("{name} (1 of {of} shown)"), marks),
    }
}

fn share_shown<T>(thinned: &Subsample<T>) -> String {
    if thinned.step() > 1 { format!(" (1 of {} shown)", thinned.step()) } else { String::new() }
}

/// Draws percentile curves: from the intended time and, dashed, as a client without a schedule would measure.
fn percentiles(run: &Run, digest: &Digest) -> Option<Picture> {
    let series: Vec<_> = digest.series.iter().filter(|(_, series)| series.latency.len() >= 10).collect();
    let most = series.iter().map(|(_, series)| series.latency.len()).max()?;
    let y = latency_axis(
        "latency",
        series
            .iter()
            .flat_map(|(_, s)| [s.latency.min().max(1) as f64, s.latency.max() as f64, s.naive.min().max(1) as f64]),
    );
    let x = Axis {
        title: "percentile of sound answers".into(),
        unit: Unit::Share,
        scale: Scale::Tail,
        range: (0.0, 1.0 - 1.0 / (most as f64).max(20.0)),
    };
    let mut plot = Plot::new("How long answers took, by percentile", x, y);
    for (at, (key, series)) in series.into_iter().enumerate() {
        let name = series_name(run, *key);
        plot = plot.with(name.clone(), colour(at), Marks::Line(curve(&series.latency), false));
        if differs(series) {
            let naive = format!("{name}: as a naive client would report it");
            plot = plot.with(naive, colour(at), Marks::Line(curve(&series.naive), true));
        }
    }
    Some(Picture {
        name: "percentiles".into(),
        caption:
            "From the time at which a request was intended. Where a dashed line lies below, that much waiting would \
                  have been hidden by a client that waits for an answer before it asks again (coordinated omission)."
                .into(),
        plot,
    })
}

/// Returns whether the naive view differs enough to be worth a line.
fn differs(series: &Series) -> bool {
    [0.5, 0.9, 0.99, 0.999].into_iter().any(|q| {
        let (real, naive) = (series.latency.value_at_quantile(q) as f64, series.naive.value_at_quantile(q) as f64);
        // A share and an amount: below 50 µs the clock itself causes differences.
        real > naive * 1.05 + 50.0
    })
}

fn curve(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let last = 1.0 - 1.0 / (histogram.len() as f64).max(2.0);
    let (steps, depth) = (160, -(1.0 - last).log10());
    let at = |i: i32| 1.0 - 10f64.powf(-depth * f64::from(i) / f64::from(steps));
    (0..=steps).map(at).map(|q| (q, histogram.value_at_quantile(q).max(1) as f64)).collect()
}

/// Draws latency over time as a heat map, which shows humps and drifts that percentiles average out. Requests without
/// a sound response have a colour of their own, as their time is not a response time.
fn heat(names: &Names, digest: &Digest, line: &TimeLine) -> Option<Picture> {
    let both = [&line.heat, &line.not_sound];
    let classes = || both.iter().flat_map(|heat| &heat.columns).flat_map(|column| column.keys()).copied();
    classes().next()?;
    let y = latency_axis("latency", classes().flat_map(|class| [edge(class), edge(class + 1)]));
    let x = time_axis(both.iter().map(|heat| heat.columns.len() as f64 * heat.width as f64));
    let mut plot = Plot::new(format!("Latency over time{}", names.title), x, y);
    for (name, colour, heat) in [("sound", COLOURS[0], &line.heat), ("not sound", BAD, &line.not_sound)] {
        let cells = cells(heat);
        if !cells.is_empty() {
            plot = plot.with(name, colour, Marks::Heat(cells));
        }
    }
    for (phase, (from, _)) in &digest.phases {
        if *phase != Phase::WarmUp && digest.phases.len() > 1 {
            plot = plot.and(QUIET, Marks::Upright(*from as f64, phase.name().into()));
        }
    }
    let caption = format!(
        "The darker, the more requests were intended in that {} and took that long; the scale is logarithmic.{}",
        label(line.heat.width as f64, Unit::Micros),
        names.trial
    );
    Some(Picture { name: format!("heat{}", names.file), caption, plot })
}

/// Returns the lower bound of a latency class.
fn edge(class: u16) -> f64 {
    10f64.powf(f64::from(class) / CLASSES_PER_DECADE)
}

/// Returns rectangles of time and latency, each with its intensity.
fn cells(heat: &Heat) -> Vec<(f64, f64, f64, f64, f64)> {
    let most = heat.columns.iter().flat_map(|column| column.values()).copied().max().unwrap_or(1);
    let strength = |n: u32| 0.12 + 0.88 * (f64::from(n).ln_1p() / f64::from(most).ln_1p());
    let width = heat.width as f64;
    let of_column = |(i, column): (usize, &BTreeMap<u16, u32>)| {
        let from = i as f64 * width;
        let cell = |(class, n): (&u16, &u32)| (from, edge(*class), from + width, edge(class + 1), strength(*n));
        column.iter().map(cell).collect::<Vec<_>>()
    };
    heat.columns.iter().enumerate().flat_map(of_column).collect()
}

/// Draws the outcomes of requests over time.
fn flow(run: &Run, digest: &Digest) -> Option<Picture> {
    let flow = &digest.flow;
    let width = flow.width as f64;
    // All trials share one time line here, so a rate is the mean of one trial.
    let trials = run.trials.len().max(1) as f64;
    let per_second = |n: u64| n as f64 * 1e6 / width / trials;
    let total = flow.stretches.iter().map(|stretch| per_second(stretch.iter().sum()));
    let y = Axis::over("requests a second", Unit::Count, Scale::Linear, total);
    let x = time_axis([flow.stretches.len() as f64 * width].into_iter());
    let mut plot = Plot::new("What became of requests, by when they were due", x, y);
    for (at, outcome) in Outcome::ALL.iter().enumerate() {
        let code = usize::from(outcome.code());
        if flow.stretches.iter().all(|stretch| stretch[code] == 0) {
            continue;
        }
        // An interval is a step, so that an empty one between two full ones is visible.
        let steps = flow.stretches.iter().enumerate().flat_map(|(i, stretch)| {
            let (from, high) = (i as f64 * width, per_second(stretch[code]));
            [(from, high), (from + width, high)]
        });
        let colour = if *outcome == Outcome::Sound { GOOD } else { colour(at) };
        plot = plot.with(outcome.name(), colour, Marks::Line(steps.collect(), false));
    }
    (!flow.stretches.is_empty()).then(|| Picture {
        name: "outcomes".into(),
        caption: format!(
            "Only sound answers count as fast; everything else is counted apart.{}",
            match (run.trials.len() > 1, digest.lines.len() > 1) {
                (true, _) => " The mean over all trials, all populations together.",
                (false, true) => " All populations together.",
                (false, false) => "",
            }
        ),
        plot,
    })
}

/// Draws first and last result of each request, and the time between them, if responses arrive in pieces.
fn firsts_and_lasts(run: &Run, digest: &Digest) -> Vec<Picture> {
    let in_pieces = |series: &Series| {
        let (between, first) = (series.between.value_at_quantile(0.5), series.first_result.value_at_quantile(0.5));
        !series.between.is_empty() && between as f64 > first as f64 * 0.02 + 100.0
    };
    let series: Vec<_> = digest.series.iter().filter(|(_, series)| in_pieces(series)).collect();
    if series.is_empty() {
        return Vec::new();
    }
    let points = || series.iter().flat_map(|(_, series)| series.firsts.kept.iter().chain(&series.lasts.kept));
    let x = Axis::over("when it was due", Unit::Micros, Scale::Linear, points().map(|p| p.0));
    let y = latency_axis("wait", points().map(|p| p.1));
    let mut clouds = Plot::new("First and last result of each request", x, y);
    let bars: Vec<_> = series.iter().map(|(_, series)| bars(&series.between)).collect();
    let x = latency_axis("from the first result to the last", bars.iter().flatten().flat_map(|bar| [bar.0, bar.2]));
    let y = Axis::over("requests", Unit::Whole, Scale::Linear, bars.iter().flatten().map(|bar| bar.3));
    let mut apart = Plot::new("How long after its first result a request had its last", x, y);
    apart.size.1 = 280;
    let (mut text, many) = (Vec::new(), bars.len());
    for (at, ((key, series), bars)) in series.into_iter().zip(bars).enumerate() {
        let name = series_name(run, *key);
        for (more, what, points) in [(0, "first", &series.firsts), (1, "last", &series.lasts)] {
            let (name, marks) = cloud(format!("{name}: {what}"), points, 2 * many);
            clouds = clouds.with(name, colour(2 * at + more), marks);
        }
        let [half, few] = [0.5, 0.95].map(|q| label(series.between.value_at_quantile(q) as f64, Unit::Micros));
        text.push(format!(
            "{name}: half the requests had their last result at most {half} after their first, 95 % at most {few}."
        ));
        let strong = bars.into_iter().map(|(from, low, to, high)| (from, low, to, high, 0.55)).collect();
        apart = apart.with(name, colour(at), Marks::Heat(strong));
    }
    let caption = "Each request's first and last result, by when it was due.".to_owned();
    let clouds = Picture { name: "first-last".into(), caption, plot: clouds };
    vec![clouds, Picture { name: "first-last-difference".into(), caption: text.join(" "), plot: apart }]
}

/// Returns a histogram as bars: from, 0, to, count.
fn bars(histogram: &Histogram<u64>) -> Vec<(f64, f64, f64, f64)> {
    let mut classes: BTreeMap<u16, u64> = BTreeMap::new();
    for value in histogram.iter_recorded() {
        // Uses the classes of the heat map: the histogram's own buckets are too fine to distinguish.
        let class = (value.value_iterated_to().max(1) as f64).log10() * CLASSES_PER_DECADE;
        *classes.entry(class as u16).or_insert(0) += value.count_at_value();
    }
    classes.into_iter().map(|(class, n)| (edge(class), 0.0, edge(class + 1), n as f64)).collect()
}

/// Draws latency over another quantity, with the least-squares line of each series.
fn scatter(
    run: &Run,
    digest: &Digest,
    name: &str,
    what: &str,
    unit: Unit,
    of: fn(&Series) -> &super::digest::Scatter,
) -> Option<Picture> {
    let series: Vec<_> = digest.series.iter().filter(|(_, series)| of(series).line().is_some()).collect();
    let points = || series.iter().flat_map(|(_, series)| &of(series).points.kept);
    points().next()?;
    let x = Axis::over(what, unit, Scale::Linear, points().map(|p| p.0));
    let y = Axis::over("latency", Unit::Micros, Scale::Linear, points().map(|p| p.1));
    let mut plot = Plot::new(format!("Latency by {what}"), x, y);
    let (mut text, many) = (Vec::new(), series.len());
    for (at, (key, series)) in series.into_iter().enumerate() {
        let (scatter, name) = (of(series), series_name(run, *key));
        let Some(fitted) = scatter.line() else { continue };
        let (from, to) = plot.x.range;
        let line = [from, to].map(|x| (x, fitted.intercept + fitted.slope.value * x)).to_vec();
        let (shown, marks) = cloud(name.clone(), &scatter.points, many);
        plot = plot.with(shown, colour(at), marks).and(colour(at), Marks::Line(line, true));
        let Estimate { value, low, high } = fitted.slope;
        text.push(match low > 0.0 || high < 0.0 {
            true => format!("{name}: {} for each more ({} to {}).", signed(value), signed(low), signed(high)),
            false => format!("{name}: no slope is seen."),
        });
    }
    Some(Picture { name: name.to_owned(), caption: text.join(" "), plot })
}

fn signed(micros: f64) -> String {
    format!("{}{}", if micros < 0.0 { "−" } else { "" }, label(micros.abs(), Unit::Micros))
}

/// Points of a line.
type Points = Vec<(f64, f64)>;
/// Lines with their names.
type Lines = Vec<(String, Points)>;

/// Draws one picture for each sampled metric.
fn sampled(samples: &[Sample]) -> Vec<Picture> {
    let mut lines: BTreeMap<(&str, &str, u16), Points> = BTreeMap::new();
    for sample in samples {
        let key = (sample.metric.as_str(), sample.source.as_str(), sample.trial);
        lines.entry(key).or_default().push((sample.at as f64, sample.value));
    }
    let mut metrics: BTreeMap<&str, Lines> = BTreeMap::new();
    for ((metric, source, trial), line) in lines {
        let name = if trial == 0 { source.to_owned() } else { format!("{source}, trial {}", trial + 1) };
        metrics.entry(metric).or_default().push((name, line));
    }
    let picture = |(metric, lines): (&str, Lines)| {
        let points = || lines.iter().flat_map(|(_, line)| line);
        let unit = if metric.ends_with("bytes") || metric == "rss" { Unit::Bytes } else { Unit::Count };
        let y = Axis::over(metric, unit, Scale::Linear, points().map(|p| p.1));
        let mut plot = Plot::new(metric, time_axis(points().map(|p| p.0)), y);
        plot.size.1 = 240;
        for (at, (name, line)) in lines.iter().enumerate() {
            plot = plot.with(name.clone(), colour(at), Marks::Line(line.clone(), false));
        }
        let name: String = metric.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Picture { name: format!("sampled-{name}"), caption: String::new(), plot }
    };
    metrics.into_iter().map(picture).collect()
}
