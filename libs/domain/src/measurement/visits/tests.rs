//! Compares the visit rule with a naive implementation.

use proptest::prelude::*;

use super::*;

type Plain = Step<&'static str>;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_000_000 + seconds, 0).unwrap()
}

fn step(seconds: i64, kind: Kind, path: &str) -> Plain {
    let engagement_ms = if kind == Kind::Engagement { 1_000 } else { 0 };
    Step {
        at: at(seconds),
        id: Uuid::from_u128(seconds.unsigned_abs().into()),
        visitor: 1,
        kind,
        host: "shop.example".into(),
        path: path.into(),
        engagement_ms,
        origin: "first",
    }
}

fn view(seconds: i64, path: &str) -> Plain {
    step(seconds, Kind::PageView, path)
}

fn visits(mut steps: Vec<Plain>) -> Vec<Visit<&'static str>> {
    visits_of(&mut steps, None, Rules::default())
}

#[test]
fn half_an_hour_of_silence_is_one_visit_and_a_millisecond_more_is_two() {
    assert_eq!(visits(vec![view(0, "/"), view(1_800, "/")]).len(), 1);
    let mut late = view(1_800, "/");
    late.at += TimeDelta::milliseconds(1);
    assert_eq!(visits(vec![view(0, "/"), late]).len(), 2);
}

#[test]
fn a_visit_lasts_a_day_at_most() {
    let steps: Vec<_> = (0..=100).map(|n| view(n * 900, "/")).collect();
    let found = visits(steps);
    assert_eq!(found.iter().map(|visit| visit.page_views).collect::<Vec<_>>(), [97, 4]);
    assert_eq!(found[0].ended - found[0].start, TimeDelta::hours(24));
}

#[test]
fn engagement_extends_a_visit_but_is_no_event() {
    let report = |seconds| step(seconds, Kind::Engagement, "/");
    let found = visits(vec![view(0, "/"), report(1_700), report(3_400), view(5_000, "/end"), report(5_060)]);
    assert_eq!(found.len(), 1);
    let visit = &found[0];
    assert_eq!((visit.page_views, visit.events, visit.engagement_ms), (2, 2, 3_000));
    assert_eq!((visit.entry_path.as_str(), visit.exit_path.as_str()), ("/", "/end"));
    assert_eq!(visit.ended - visit.start, TimeDelta::seconds(5_060));
}

#[test]
fn engagement_time_is_at_most_a_day() {
    let report = |n: i64| Plain { engagement_ms: 1_800_000, ..step(n, Kind::Engagement, "/") };
    let visit = visits((1..=100).map(report).chain([view(0, "/")]).collect()).pop().unwrap();
    assert_eq!(visit.engagement_ms, 86_400_000);
}

#[test]
fn engagement_alone_starts_no_visit() {
    let report = step(4_000, Kind::Engagement, "/");
    let found = visits(vec![view(0, "/"), report, view(5_000, "/")]);
    assert_eq!(
        found.iter().map(|visit| (visit.page_views, visit.engagement_ms)).collect::<Vec<_>>(),
        [(1, 0), (1, 0)]
    );
    assert_eq!(found[0].ended, at(0));
    assert_eq!(
        found[1].start,
        at(5_000),
        "the report of a visit long over doesn't bring the next one nearer"
    );
}

#[test]
fn one_page_view_and_no_other_event_is_a_bounce() {
    let bounces = |steps| visits(steps)[0].is_bounce();
    assert!(bounces(vec![view(0, "/"), step(9, Kind::Engagement, "/")]));
    assert!(!bounces(vec![view(0, "/"), view(9, "/")]));
    assert!(!bounces(vec![view(0, "/"), step(9, Kind::Custom, "/")]));
    assert!(!bounces(vec![step(0, Kind::Custom, "/")]));
}

#[test]
fn a_visit_without_a_page_view_has_no_entry_page() {
    let visit = &visits(vec![step(0, Kind::Custom, "/")])[0];
    assert_eq!(
        (visit.entry_host.as_str(), visit.entry_path.as_str(), visit.exit_path.as_str()),
        ("", "", "")
    );
    assert_eq!((visit.page_views, visit.events), (0, 1));
}

#[test]
fn a_visit_in_progress_takes_the_steps_that_belong_to_it() {
    let before = VisitInProgress { start: at(-86_000), last: at(-1_000) };
    let mut steps = vec![view(0, "/"), view(400, "/"), view(401, "/new"), view(500, "/")];
    let found = visits_of(&mut steps, Some(before), Rules::default());
    assert_eq!(found.iter().map(|visit| (visit.start, visit.page_views)).collect::<Vec<_>>(), [(at(401), 2)]);
    let found = visits_of(&mut steps, Some(VisitInProgress { last: at(-1_801), ..before }), Rules::default());
    assert_eq!(found.iter().map(|visit| visit.start).collect::<Vec<_>>(), [at(0)]);
}

/// Decides for every event on its own to which visit it belongs.
fn naive(steps: &[Plain], rules: Rules) -> Vec<(DateTime<Utc>, Vec<Plain>)> {
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| (step.at, step.id));
    let mut groups: Vec<(DateTime<Utc>, Vec<Plain>)> = Vec::new();
    for step in sorted {
        let open = groups.last().is_some_and(|(start, members)| {
            let last = members.iter().map(|member| member.at).max().unwrap();
            !(step.at > last + rules.gap || step.at > *start + rules.longest)
        });
        if open {
            groups.last_mut().unwrap().1.push(step);
        } else if step.kind != Kind::Engagement {
            groups.push((step.at, vec![step]));
        }
    }
    groups
}

fn any_steps() -> impl Strategy<Value = Vec<Plain>> {
    let kind = prop_oneof![Just(Kind::PageView), Just(Kind::Custom), Just(Kind::Engagement)];
    let pause = prop_oneof![0..3_i64, 0..1_200_i64, 1_799..1_802_i64, 0..9_000_i64];
    let steps = prop::collection::vec((pause, kind, 0..4_u8), 0..300).prop_map(|pauses| {
        let mut now = 0;
        let made = pauses.into_iter().enumerate().map(|(number, (pause, kind, page))| {
            now += pause;
            Step { id: Uuid::from_u128(number as u128), ..step(now, kind, &format!("/{page}")) }
        });
        made.collect::<Vec<_>>()
    });
    steps.prop_shuffle()
}

proptest! {
    #[test]
    fn agrees_with_the_naive_rule(steps in any_steps()) {
        let rules = Rules::default();
        let expected: Vec<_> = naive(&steps, rules)
            .into_iter()
            .map(|(start, members)| {
                let views: Vec<_> = members.iter().filter(|member| member.kind == Kind::PageView).collect();
                let path = |view: Option<&&Plain>| view.map(|view| view.path.clone()).unwrap_or_default();
                Visit {
                    visitor: 1,
                    start,
                    ended: members.iter().map(|member| member.at).max().unwrap(),
                    page_views: u32::try_from(views.len()).unwrap(),
                    events: u32::try_from(members.iter().filter(|m| m.kind != Kind::Engagement).count()).unwrap(),
                    entry_host: if views.is_empty() { String::new() } else { "shop.example".into() },
                    entry_path: path(views.first()),
                    exit_path: path(views.last()),
                    engagement_ms: members.iter().map(|member| member.engagement_ms).sum(),
                    tally: members.iter().map(|member| Tally::of(member.at)).sum(),
                    origin: "first",
                }
            })
            .collect();
        prop_assert_eq!(visits(steps), expected);
    }

    #[test]
    fn may_start_in_the_middle(steps in any_steps(), cut in 0..300_usize) {
        let mut sorted = steps;
        sorted.sort_by_key(|step| (step.at, step.id));
        let cut = cut.min(sorted.len());
        let whole = visits(sorted.clone());
        let groups = naive(&sorted[..cut], Rules::default());
        let before = groups.last().map(|(start, members)| VisitInProgress {
            start: *start,
            last: members.iter().map(|member| member.at).max().unwrap(),
        });
        let rest = visits_of(&mut sorted[cut..], before, Rules::default());
        prop_assert_eq!(&whole[whole.len() - rest.len()..], rest.as_slice());
        prop_assert_eq!(whole.len() - rest.len(), groups.len());
    }

    #[test]
    fn extending_gives_the_same_as_recomputing(steps in any_steps(), cut in 0..300_usize) {
        let mut sorted = steps;
        sorted.sort_by_key(|step| (step.at, step.id));
        let cut = cut.min(sorted.len());
        let all_of = |visits: &[Visit<_>]| visits.iter().map(|visit| visit.tally).sum::<Tally>();
        let mut so_far = visits(sorted[..cut].to_vec());
        let is_whole = all_of(&so_far) == sorted[..cut].iter().map(|step| Tally::of(step.at)).sum();
        let is_later = cut == 0 || cut == sorted.len() || sorted[cut - 1].at < sorted[cut].at;
        let gone_on = extend_visits(so_far.pop(), &mut sorted[cut..], Rules::default());
        if is_whole && is_later {
            so_far.extend(gone_on.unwrap());
            prop_assert_eq!(so_far, visits(sorted));
        }
    }
}

#[test]
fn nothing_extends_a_visit_that_began_before_its_end() {
    let last = visits(vec![view(0, "/"), view(60, "/")]).pop();
    assert_eq!(extend_visits(last.clone(), &mut [view(60, "/late")], Rules::default()), None);
    assert_eq!(extend_visits(last.clone(), &mut [view(90, "/"), view(30, "/late")], Rules::default()), None);
    let found = extend_visits(last, &mut [view(61, "/next")], Rules::default()).unwrap();
    assert_eq!((found.len(), found[0].page_views, found[0].exit_path.as_str()), (1, 3, "/next"));
}

#[test]
fn visits_of_the_rule_start_after_one_another_and_parts_of_one_visit_do_not() {
    let rules = Rules::default();
    let before = VisitInProgress { start: at(0), last: at(600) };
    for (start, expected) in [(-10, false), (0, false), (600, false), (2_400, false), (2_401, true)] {
        assert_eq!(may_start(before, at(start), rules), expected, "{start}");
    }
    let long = VisitInProgress { start: at(-86_000), last: at(0) };
    assert!(may_start(long, at(401), rules), "it has lasted for a day");
}

#[test]
fn a_tally_detects_a_duplicate_and_a_missing_step() {
    let tally = |seconds: &[i64]| seconds.iter().map(|second| Tally::of(at(*second))).sum::<Tally>();
    assert_eq!(tally(&[0, 1]), tally(&[1, 0]));
    assert_ne!(tally(&[0, 1]), tally(&[1, 1]));
    assert_ne!(tally(&[0, 86_399]), tally(&[86_399, 86_399]));
}
