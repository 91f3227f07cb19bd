use super::*;
use proptest::prelude::*;

const FIRST: &str = "[target]\nurl = \"http://127.0.0.1:7117\"\n\n[arrival]\nkind = \"constant\"\nrate = 100\n\n[request]\npath = \"/items\"\n";

fn parse(text: &str) -> Result<Scenario> {
    Scenario::parse(text, "first.toml", &[])
}

fn error(text: &str) -> String {
    parse(text).expect_err("must be refused").to_string()
}

#[test]
fn a_first_scenario_is_ten_lines_and_resolves_to_a_form_that_reads_the_same() {
    let scenario = parse(FIRST).expect("reads");
    assert!(FIRST.lines().count() <= 10);
    assert_eq!(scenario.name, "first");
    assert_eq!(scenario.population[0].name, "users");
    assert_eq!(scenario.request[0].name, "/items");
    let again = Scenario::parse(&scenario.to_toml().expect("writes"), "x.toml", &[]).expect("reads again");
    assert_eq!(again, scenario);
}

#[test]
fn mistakes_name_the_line_or_the_key_and_what_was_expected() {
    let cases = [
        (FIRST.replace("rate", "rat"), vec!["first.toml:4", "rat", "rate"]),
        (FIRST.replace("path", "pth"), vec!["first.toml:9", "pth", "path"]),
        (FIRST.replace("= 100", "= -5"), vec!["arrival.rate = -5", "above 0"]),
        (FIRST.replace("= 100", "= inf"), vec!["arrival.rate = inf", "at most"]),
        (FIRST.replace("constant", "sometimes"), vec!["first.toml:5", "sometimes", "poisson"]),
        (FIRST.replace("\"/items\"", "\"items\""), vec!["path = \"items\"", "begins with /"]),
        (FIRST.replace("[arrival]", "[arrival"), vec!["first.toml:4"]),
        (format!("{FIRST}[phases]\nmeasured_s = 0\n"), vec!["phases.measured_s = 0", "more than 0"]),
        (format!("{FIRST}[[objective]]\nmetric = \"p95_ms\"\n"), vec!["objective p95_ms", "at_most or at_least"]),
        (format!("{FIRST}[request.check]\nsame_as = \"b\"\n"), vec!["same_as = \"b\"", "no target"]),
        (FIRST.replace("[arrival]", "[arrivals]"), vec!["first.toml:4", "arrivals"]),
    ];
    for (text, parts) in cases {
        let message = error(&text);
        for part in parts {
            assert!(message.contains(part), "{message:?} does not name {part:?}");
        }
        assert!(!message.contains('\n'), "{message:?} is not one line");
    }
}

#[test]
fn sets_reach_every_depth_and_mistakes_in_them_are_named() {
    let set = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Scenario::parse(FIRST, "first.toml", &sets)
    };
    let scenario =
        set(&["arrival.rate=250", "target.timeout_s=2.5", "request.check.status=204", "name=night"]).expect("fits");
    assert_eq!(scenario.population[0].arrival, Arrival::Constant { rate: 250.0 });
    assert_eq!(scenario.target[0].timeout_s, 2.5);
    assert_eq!(scenario.request[0].check.status, Some(204));
    assert_eq!(scenario.name, "night");
    for (sets, part) in [
        ("arrival.rate", "key=value"),
        ("arrival.rate.x=1", "rate is a value"),
        ("arrival.speed=1", "speed"),
        (".=1", "empty part"),
    ] {
        let message = set(&[sets]).expect_err(sets).to_string();
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

#[test]
fn a_set_reaches_into_one_of_several() {
    let text = FIRST.replace("[request]\npath = \"/items\"", "[[request]]\npath = \"/a\"\n[[request]]\npath = \"/b\"");
    let set = |set: &str| Scenario::parse(&text, "first.toml", &[set.to_owned()]);
    assert_eq!(set("request.1.weight=3").expect("fits").request[1].weight, 3.0);
    assert!(set("request.weight=3").expect_err("two").to_string().contains("request.0 to request.1"));
    assert!(set("request.2.weight=3").expect_err("two").to_string().contains("no request.2"));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]a-z=\\.\"0-9 \\n]{0,200}", key in "[a-z.]{0,12}", value in ".{0,8}") {
        let _ = parse(&text);
        let _ = Scenario::parse(FIRST, "x", &[format!("{key}={value}")]);
    }
}
