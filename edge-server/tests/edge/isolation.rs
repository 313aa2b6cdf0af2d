//! A page never mixes accounts: seeded schedules of everything that moves names and pages about, with visitors
//! reading all the while.
//!
//! Every page says whose it is, on which site, under which slug and in which version. While things move, a visitor
//! may see what was true a moment ago, of accounts that had the name; once the edge has heard of everything, only what is
//! true. That also holds for what was deleted while it was being fetched.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use futures::future::join_all;
use http::StatusCode;
use service::Rng;
use uuid::Uuid;

use crate::client::Answer;
use crate::harness::Edge;

const NAMES: [&str; 4] = ["quiet-otter", "loud-badger", "swift-heron", "still-marten"];
const SLUGS: [&str; 3] = ["index", "about", "docs/start"];
const ROUNDS: usize = 12;
const STEPS: usize = 6;

/// What a page says of itself.
fn marked(owner: usize, slug: &str, version: u64) -> String {
    format!("owner={owner} slug={slug} version={version}")
}

/// What is true, as Postgres has it.
struct World<'a> {
    edge: &'a Edge,
    rng: Rng,
    sites: Vec<Uuid>,
    accounts: Vec<Uuid>,
    /// Who has which name; a site always has one.
    names: Vec<&'static str>,
    /// The version of each published page.
    pages: BTreeMap<(usize, &'static str), u64>,
    version: u64,
    /// Who has ever had which name, also for a moment.
    held: BTreeSet<(&'static str, usize)>,
    /// Everything that ever stood on a site's page.
    said: BTreeSet<(usize, &'static str, String)>,
}

impl World<'_> {
    fn pick(&self, among: usize) -> usize {
        usize::from(u16::from_le_bytes(self.rng.bytes())) % among
    }

    /// Noted before it is true: a visitor may see it before we are told that it is.
    fn note(&mut self) {
        self.held.extend(self.names.iter().enumerate().map(|(owner, name)| (*name, owner)));
        let pages = self.pages.iter();
        self.said
            .extend(pages.map(|((owner, slug), version)| (*owner, *slug, marked(*owner, slug, *version))));
    }

    /// Whether a visitor may have seen that: the name's and the page's times need not be one, as who has begun to
    /// read a site reads on.
    fn was_ever(&self, name: &'static str, slug: &'static str, text: &str) -> bool {
        let holders = self.held.iter().filter(|(held, _)| *held == name);
        holders.into_iter().any(|(_, owner)| self.said.contains(&(*owner, slug, text.to_owned())))
    }

    /// One change, committed and said.
    async fn step(&mut self) {
        let (owner, slug) = (self.pick(self.sites.len()), SLUGS[self.pick(SLUGS.len())]);
        let page = Change::Page { subdomain_id: self.sites[owner], slug: slug.to_owned() };
        match self.pick(5) {
            0 | 1 => {
                self.version += 1;
                self.publish(owner, slug).await;
                self.edge.publish_change(page).await;
            }
            2 => {
                self.pages.remove(&(owner, slug));
                let of = format!("subdomain_id = '{}' and slug = '{slug}'", self.sites[owner]);
                if self.pick(2) == 0 {
                    self.edge.run(&format!("delete from pages where {of}")).await;
                } else {
                    self.edge.run(&format!("update pages set is_published = false where {of}")).await;
                }
                self.edge.publish_change(page).await;
            }
            3 => self.rename(owner).await,
            _ => self.swap(owner).await,
        }
    }

    async fn publish(&mut self, owner: usize, slug: &'static str) {
        self.pages.insert((owner, slug), self.version);
        self.note();
        self.edge
            .run(&format!(
                "insert into pages (id, account_id, subdomain_id, slug, title, html, created_at, updated_at)
                 values (gen_random_uuid(), '{}', '{}', '{slug}', 'T', '{}', now(), now())
                 on conflict (subdomain_id, slug) do update set html = excluded.html, is_published = true",
                self.accounts[owner],
                self.sites[owner],
                marked(owner, slug, self.version),
            ))
            .await;
    }

    /// To a name that nobody has.
    async fn rename(&mut self, owner: usize) {
        let Some(free) = NAMES.into_iter().find(|name| !self.names.contains(name)) else { return };
        let old = std::mem::replace(&mut self.names[owner], free);
        self.note();
        self.edge
            .run(&format!("update subdomains set name = '{free}' where id = '{}'", self.sites[owner]))
            .await;
        self.publish_host_changes(&[old, free]).await;
    }

    /// Two sites change names with one another, at once: the worst that can happen to a name.
    async fn swap(&mut self, owner: usize) {
        let other = (owner + 1) % self.sites.len();
        self.names.swap(owner, other);
        self.note();
        let (one, two) = (self.names[owner], self.names[other]);
        self.edge
            .run(&format!(
                "update subdomains set name = 'between-names' where id = '{0}';
                 update subdomains set name = '{3}' where id = '{1}';
                 update subdomains set name = '{2}' where id = '{0}'",
                self.sites[owner], self.sites[other], one, two,
            ))
            .await;
        self.publish_host_changes(&[one, two]).await;
    }

    async fn publish_host_changes(&self, names: &[&str]) {
        for name in names {
            self.edge.publish_change(Change::Host { host: (*name).to_owned() }).await;
        }
    }

    /// What a visitor of that name and slug must see now; nothing for 404.
    fn true_now(&self, name: &str, slug: &str) -> Option<String> {
        let owner = self.names.iter().position(|held| *held == name)?;
        let (_, version) = self.pages.iter().find(|((of, at), _)| *of == owner && *at == slug)?;
        Some(marked(owner, slug, *version))
    }
}

async fn run(seed: u64) {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let mut world = World {
        edge: &edge,
        rng: Rng::seeded(seed),
        sites: Vec::new(),
        accounts: Vec::new(),
        names: Vec::new(),
        pages: BTreeMap::new(),
        version: 0,
        held: BTreeSet::new(),
        said: BTreeSet::new(),
    };
    for name in &NAMES[..3] {
        let site = edge.account(name).await;
        world.sites.push(site.subdomain_id);
        world.accounts.push(site.id);
        world.names.push(name);
    }
    world.note();
    // On a machine with too much to do a look-up is given up, and the visitor asked to come again.
    let is_told = |answer: &Answer| answer.status != StatusCode::SERVICE_UNAVAILABLE;
    let edge = &edge;
    for round in 0..ROUNDS {
        let visits = async {
            let mut seen = Vec::new();
            for _ in 0..4 {
                let all = NAMES.iter().flat_map(|name| SLUGS.iter().map(move |slug| (*name, *slug)));
                seen.extend(
                    join_all(all.map(async |(name, slug)| {
                        let path = domain::pages::path_of(slug);
                        ((name, slug), edge.get_until(&format!("{name}.localhost"), &path, is_told).await)
                    }))
                    .await,
                );
            }
            seen
        };
        let steps = async {
            for _ in 0..STEPS {
                world.step().await;
            }
        };
        let (seen, ()) = futures::join!(visits, steps);
        for ((name, slug), answer) in seen {
            if answer.status == StatusCode::OK {
                let text = answer.text();
                assert!(
                    world.was_ever(name, slug, text),
                    "seed {seed}, round {round}: {name} {slug} says {text}"
                );
            } else {
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "seed {seed}: {}", answer.text());
            }
        }
        edge.wait_until_signals_handled().await;
        for (name, slug) in NAMES.iter().flat_map(|name| SLUGS.iter().map(move |slug| (*name, *slug))) {
            let path = domain::pages::path_of(slug);
            let answer = edge.get_until(&format!("{name}.localhost"), &path, is_told).await;
            let shown = (answer.status == StatusCode::OK).then(|| answer.text().to_owned());
            assert_eq!(shown, world.true_now(name, slug), "seed {seed}, round {round}: {name} {slug}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_never_mix_accounts_while_names_move() {
    for seed in 1..=8 {
        run(seed).await;
    }
}
