//! The mix of a population: from a random source to the bytes of a request.

use super::{Source, Template, Value};
use crate::scenario::{Population, Request, Scenario, Target};
use rand_distr::{Distribution, weighted::WeightedIndex};
use rand_pcg::Pcg64;
use std::rc::Rc;

/// One request ready to be sent.
#[derive(Debug, Clone)]
pub struct Question {
    /// Index of the request in the scenario.
    pub request: u16,
    /// The bytes for the socket (for HTTP: head and body).
    pub bytes: Rc<[u8]>,
    /// Range of path and query in `bytes`, for checks and for protocols that frame them otherwise.
    pub path: std::ops::Range<usize>,
    /// Offset of the body.
    pub body_at: usize,
}

/// How a protocol frames its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As an HTTP/1.1 request: head and body.
    Http,
    /// Path and body, unchanged.
    Plain,
    /// A statement, whose parameters are the body: their number, then each as text, preceded by its length.
    Sql,
}

/// The address of a target, as far as requests contain it.
#[derive(Debug)]
pub struct Endpoint<'a> {
    /// Host and port.
    pub host: &'a str,
    /// Path at the end of the target's address.
    pub base: &'a str,
    /// How requests are framed.
    pub encoding: Encoding,
}

impl Question {
    /// Returns the method.
    pub fn method(&self) -> &[u8] {
        self.bytes.split(|byte| *byte == b' ').next().unwrap_or_default()
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }

    /// Returns the same user's request for another path: a GET with the same headers, except for those of a body.
    pub fn get(&self, path: &str) -> Question {
        let head = String::from_utf8_lossy(&self.bytes[..self.body_at]);
        let mut text = format!("GET {path} HTTP/1.1\r\n");
        for header in head.split("\r\n").skip(1).filter(|header| !header.is_empty()) {
            let name = header.split(':').next().unwrap_or_default();
            if !["content-length", "content-type"].iter().any(|of_body| name.eq_ignore_ascii_case(of_body)) {
                text.push_str(header);
                text.push_str("\r\n");
            }
        }
        text.push_str("\r\n");
        let path = "GET ".len().."GET ".len() + path.len();
        Question { request: self.request, path, body_at: text.len(), bytes: text.as_bytes().into() }
    }

    /// Returns the part between path and body: a statement, if the form has one.
    pub fn statement(&self) -> &[u8] {
        self.bytes.get(self.path.end..self.body_at).unwrap_or_default()
    }

    /// Returns path and query as sent.
    pub fn path(&self) -> &str {
        self.bytes.get(self.path.clone()).and_then(|path| std::str::from_utf8(path).ok()).unwrap_or_default()
    }
}

/// The requests of a population, their weights, and the generators that they name.
#[derive(Debug, Clone)]
pub struct Mix {
    entries: Vec<Entry>,
    weights: Option<WeightedIndex<f64>>,
    sources: Vec<(String, Source)>,
    drawn: Vec<Vec<Value>>,
    scratch: Vec<u8>,
    body: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Entry {
    request: u16,
    method: String,
    path: Template,
    body: Option<Template>,
    encoding: Encoding,
    /// The part between path and body: the rest of the head, from ` HTTP/1.1` to before the content length, or a
    /// statement.
    middle: Template,
    generators: Vec<usize>,
    /// The whole request, if it has no placeholders.
    ready: Option<Question>,
}

impl Mix {
    /// Prepares the requests of `population` for `target`. Errors name request or generator.
    pub fn new(
        scenario: &Scenario,
        population: &Population,
        target: &Target,
        endpoint: &Endpoint<'_>,
    ) -> Result<Mix, String> {
        let mut sources = Vec::new();
        for (name, generator) in &scenario.generate {
            sources.push((name.clone(), Source::new(generator).map_err(|e| format!("generate.{name}: {e}"))?));
        }
        let mut entries = Vec::new();
        let mut weights = Vec::new();
        for (index, request) in scenario.requests_of(population) {
            entries.push(Entry::new(index, request, target, endpoint, &sources)?);
            weights.push(request.weight);
        }
        let weights = if entries.len() > 1 {
            Some(WeightedIndex::new(&weights).map_err(|e| format!("population {}: weights: {e}", population.name))?)
        } else {
            None
        };
        let drawn = vec![Vec::new(); sources.len()];
        let mut mix = Mix { entries, weights, sources, drawn, scratch: Vec::new(), body: Vec::new() };
        for at in 0..mix.entries.len() {
            // Rendered once, so that the lab spends no time on it during the measurement.
            if mix.entries[at].generators.is_empty() {
                mix.entries[at].ready = Some(mix.render(at));
            }
        }
        Ok(mix)
    }

    /// Creates a mix of given requests, such as the lines of a log: method and path of each. Their records refer to
    /// `index`.
    pub fn fixed(
        index: usize,
        target: &Target,
        endpoint: &Endpoint<'_>,
        lines: &[(String, String)],
    ) -> Result<Mix, String> {
        let entries = lines.iter().map(|(method, path)| {
            let request = Request::plain(method, path);
            Entry::new(index, &request, target, endpoint, &[])
        });
        let mut mix = Mix {
            entries: entries.collect::<Result<_, _>>()?,
            weights: None,
            sources: Vec::new(),
            drawn: Vec::new(),
            scratch: Vec::new(),
            body: Vec::new(),
        };
        for at in 0..mix.entries.len() {
            mix.entries[at].ready = Some(mix.render(at));
        }
        Ok(mix)
    }

    /// Returns the next request.
    pub fn next(&mut self, random: &mut Pcg64) -> Question {
        let at = self.weights.as_ref().map_or(0, |weights| weights.sample(random));
        if let Some(ready) = &self.entries[at].ready {
            return ready.clone();
        }
        for generator in &self.entries[at].generators {
            self.sources[*generator].1.draw(random, &mut self.drawn[*generator]);
        }
        self.render(at)
    }

    /// Returns the n-th of the given requests.
    pub fn nth(&mut self, n: usize) -> Question {
        let at = n % self.entries.len().max(1);
        match &self.entries[at].ready {
            Some(ready) => ready.clone(),
            None => self.render(at),
        }
    }

    fn render(&mut self, at: usize) -> Question {
        let entry = &self.entries[at];
        let out = &mut self.scratch;
        out.clear();
        out.extend_from_slice(entry.method.as_bytes());
        out.push(b' ');
        let path_at = out.len();
        entry.path.render(&self.drawn, entry.encoding == Encoding::Http, out);
        let path = path_at..out.len();
        entry.middle.render(&self.drawn, entry.encoding == Encoding::Http, out);
        self.body.clear();
        if let Some(template) = &entry.body {
            match entry.encoding {
                Encoding::Http | Encoding::Plain => template.render(&self.drawn, false, &mut self.body),
                Encoding::Sql => template.parameters(&self.drawn, &mut self.body),
            }
        }
        if entry.encoding == Encoding::Http {
            if entry.body.is_some() {
                out.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        }
        let body_at = out.len();
        out.extend_from_slice(&self.body);
        Question { request: entry.request, bytes: out.as_slice().into(), path, body_at }
    }
}

impl Entry {
    fn new(
        index: usize,
        request: &Request,
        target: &Target,
        endpoint: &Endpoint<'_>,
        sources: &[(String, Source)],
    ) -> Result<Entry, String> {
        let named = |e: String| format!("request {}: {e}", request.name);
        let path = Template::parse(&format!("{}{}", endpoint.base, request.path), sources).map_err(named)?;
        let body = request.body.as_deref().map(|body| Template::parse(body, sources)).transpose().map_err(named)?;
        let middle = match (endpoint.encoding, &body) {
            (Encoding::Http, _) => {
                let headers = headers(target, request, endpoint.host)?;
                Template::parse(&headers, sources).map_err(named)?
            }
            (Encoding::Sql, Some(body)) => Template::plain(body.statement().map_err(named)?),
            _ => Template::default(),
        };
        let templates = [&path, &middle].into_iter().chain(&body);
        let mut generators: Vec<usize> = templates.flat_map(Template::generators).collect();
        generators.sort_unstable();
        // One draw for all placeholders of a generator, so that its fields belong together.
        generators.dedup();
        let request_index = u16::try_from(index).map_err(|_| "there are too many requests".to_owned())?;
        Ok(Entry {
            request: request_index,
            method: request.method.clone(),
            path,
            body,
            encoding: endpoint.encoding,
            middle,
            generators,
            ready: None,
        })
    }
}

/// Returns the rest of an HTTP/1.1 head after its path, up to before the content length.
fn headers(target: &Target, request: &Request, host: &str) -> Result<String, String> {
    let mut headers = String::from(" HTTP/1.1\r\n");
    // A header of the request replaces the target's.
    let own = target.headers.iter().filter(|(name, _)| !request.headers.contains_key(*name));
    let mut has_host = false;
    for (name, value) in own.chain(&request.headers) {
        has_host |= name.eq_ignore_ascii_case("host");
        headers.push_str(&format!("{name}: {value}\r\n"));
    }
    if !has_host {
        // After the request line: `Host` comes first (RFC 9110, section 7.2).
        headers.insert_str(11, &format!("host: {host}\r\n"));
    }
    if let Some(authorization) = target.authorization()? {
        headers.push_str(&format!("authorization: {authorization}\r\n"));
    }
    Ok(headers)
}
