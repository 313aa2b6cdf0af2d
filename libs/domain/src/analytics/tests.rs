//! Questions, and days in zones where a day isn't always 24 hours.

use chrono_tz::Tz;

use super::*;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn day(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

fn ask(asked: Asked<'_>) -> Result<Question, Vec<(String, &'static str)>> {
    let wrong = |complaints: Vec<Complaint>| complaints.into_iter().map(|c| (c.field, c.code)).collect();
    read_question(asked, at("2026-11-21T10:00:00Z"), &Utc).map_err(wrong)
}

fn days_of(period: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let range = ask(Asked { period: Some(period), ..Asked::default() }).unwrap().range;
    (range.start, range.end)
}

#[test]
fn a_period_of_n_days_is_today_and_the_days_before() {
    let tomorrow = at("2026-11-22T00:00:00Z");
    assert_eq!(days_of("today"), (at("2026-11-21T00:00:00Z"), tomorrow));
    assert_eq!(days_of("7d"), (at("2026-11-15T00:00:00Z"), tomorrow));
    assert_eq!(days_of("30d"), (at("2026-10-23T00:00:00Z"), tomorrow));
    assert_eq!(days_of("90d"), (at("2026-08-24T00:00:00Z"), tomorrow));
}

#[test]
fn custom_days_include_both_ends() {
    let asked = Asked {
        metric: Some("unique_visitors"),
        period: Some("custom"),
        from: Some("2026-02-28"),
        to: Some("2026-02-28"),
    };
    let question = ask(asked).unwrap();
    assert_eq!(question.metric, Metric::UniqueVisitors);
    assert_eq!(question.range, Range { start: at("2026-02-28T00:00:00Z"), end: at("2026-03-01T00:00:00Z") });
}

#[test]
fn absent_words_mean_page_views_of_a_week() {
    let question = ask(Asked::default()).unwrap();
    assert_eq!(question.metric, Metric::PageViews);
    assert_eq!(question.range.end - question.range.start, TimeDelta::days(7));
}

#[test]
fn every_wrong_field_is_named_at_once() {
    let asked = Asked { metric: Some("clicks"), period: Some("custom"), from: Some("2026-13-01"), to: None };
    let said = [("metric", "unknown"), ("from", "date"), ("to", "required")];
    assert_eq!(ask(asked).unwrap_err(), said.map(|(field, code)| (field.to_owned(), code)));

    let message = read_question(asked, at("2026-11-21T10:00:00Z"), &Utc).unwrap_err()[0].message.clone();
    assert!(Metric::ALL.iter().all(|metric| message.contains(metric.word())), "{message}");
    let asked = Asked { period: Some("8d"), ..Asked::default() };
    assert_eq!(ask(asked).unwrap_err(), [("period".to_owned(), "unknown")]);
}

#[test]
fn days_out_of_order_or_out_of_reach_are_refused() {
    let custom =
        |from, to| ask(Asked { metric: None, period: Some("custom"), from: Some(from), to: Some(to) });
    assert_eq!(custom("2026-02-02", "2026-02-01").unwrap_err(), [("from".to_owned(), "after_to")]);
    for wrong in
        ["1969-12-31", "2200-01-01", "2026-2-1", "+2026-02-1", "2026-02-01T00:00:00Z", "", "2026-02-30"]
    {
        assert_eq!(custom(wrong, "2026-02-01").unwrap_err(), [("from".to_owned(), "date")], "{wrong}");
    }
}

#[test]
fn today_is_the_sites_day_not_ours() {
    let kathmandu: Tz = "Asia/Kathmandu".parse().unwrap();
    let asked = Asked { period: Some("today"), ..Asked::default() };
    let question = read_question(asked, at("2026-11-21T18:30:00Z"), &kathmandu).unwrap();
    assert_eq!(question.range, Range { start: at("2026-11-21T18:15:00Z"), end: at("2026-11-22T18:15:00Z") });
}

#[test]
fn a_day_is_as_long_as_its_clock_says() {
    let hours = |zone: &str, date: &str| {
        let range = Range::of_days(day(date), day(date), &zone.parse::<Tz>().unwrap());
        (range.end - range.start).num_minutes()
    };
    assert_eq!(hours("Europe/Berlin", "2026-03-29"), 23 * 60);
    assert_eq!(hours("Europe/Berlin", "2026-10-25"), 25 * 60);
    assert_eq!(hours("Australia/Lord_Howe", "2026-04-05"), 24 * 60 + 30);
    // This day had no midnight …
    assert_eq!(hours("America/Sao_Paulo", "2018-11-04"), 23 * 60);
    // … this one had two …
    assert_eq!(hours("America/Havana", "2026-11-01"), 25 * 60);
    // … and this one was not there at all.
    assert_eq!(hours("Pacific/Apia", "2011-12-30"), 0);
}
