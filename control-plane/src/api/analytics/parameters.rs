//! Parameters that queries of metrics share: the site, the period, the filters and the comparison.

/// Defines the parameters of a query of metrics: the given ones, after the site, and those that all such queries have.
macro_rules! metric_parameters {
    ($(#[$own:meta])* $name:ident { $($(#[$attribute:meta])* $parameter:ident: $type:ty,)* }) => {
        $(#[$own])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name {
            /// The analytics site to query.
            site_id: uuid::Uuid,
            $($(#[$attribute])* $parameter: $type,)*
            /// Whole days in the site's time zone. `7d` (the default) is today and the 6 days before; `custom` runs from
            /// `from` to `to`, both included.
            #[schemars(extend("enum" = domain::analytics::Period::ALL.map(domain::analytics::Period::as_str)))]
            period: Option<String>,
            /// First day of a `custom` period.
            #[schemars(extend("format" = "date"))]
            from: Option<String>,
            /// Last day of a `custom` period.
            #[schemars(extend("format" = "date"))]
            to: Option<String>,
            /// A JSON object of dimensions and exact values; an event must match all of them. Names as in `breakdownBy` of
            /// analytics.query; `(none)` or an empty string matches a missing value. `filters.utm_source=…` and
            /// `filters[utm_source]=…` are other ways to write the same.
            #[schemars(extend("examples" = [r#"{"utm_source":"newsletter"}"#]))]
            filters: Option<String>,
            /// Adds `comparison` with the same number of days immediately before, and `previous` to the rows of breakdowns.
            /// Future days are left out of both periods.
            #[serde(default)]
            compare: bool,
            /// Maximum number of breakdown rows; default 10.
            #[schemars(range(min = 1, max = domain::analytics::LIMIT_MAX), extend("default" = domain::analytics::LIMIT_DEFAULT))]
            limit: Option<i64>,
            /// Same as `url` in `filters`.
            #[serde(rename = "filters.url")]
            url: Option<String>,
            /// Same as `referrer` in `filters`.
            #[serde(rename = "filters.referrer")]
            referrer: Option<String>,
            /// Same as `country` in `filters`.
            #[serde(rename = "filters.country")]
            country: Option<String>,
            /// Same as `city` in `filters`.
            #[serde(rename = "filters.city")]
            city: Option<String>,
            /// Same as `region` in `filters`.
            #[serde(rename = "filters.region")]
            region: Option<String>,
            /// Same as `device` in `filters`.
            #[serde(rename = "filters.device")]
            device: Option<String>,
            /// Same as `browser` in `filters`.
            #[serde(rename = "filters.browser")]
            browser: Option<String>,
            /// Same as `os` in `filters`.
            #[serde(rename = "filters.os")]
            os: Option<String>,
            /// Same as `utm_source` in `filters`.
            #[serde(rename = "filters.utm_source")]
            utm_source: Option<String>,
            /// Same as `utm_medium` in `filters`.
            #[serde(rename = "filters.utm_medium")]
            utm_medium: Option<String>,
            /// Same as `utm_campaign` in `filters`.
            #[serde(rename = "filters.utm_campaign")]
            utm_campaign: Option<String>,
            /// Same as `entry_page` in `filters`.
            #[serde(rename = "filters.entry_page")]
            entry_page: Option<String>,
            /// Same as `exit_page` in `filters`.
            #[serde(rename = "filters.exit_page")]
            exit_page: Option<String>,
            /// Same as `channel` in `filters`.
            #[serde(rename = "filters.channel")]
            channel: Option<String>,
        }

        impl $name {
            /// The filters given as separate `filters.…` parameters.
            fn filter(&self) -> Vec<(&str, &str)> {
                use domain::analytics::Dimension;
                let given = |dimension: Dimension| {
                    let value = match dimension {
                        Dimension::Url => &self.url,
                        Dimension::Referrer => &self.referrer,
                        Dimension::Country => &self.country,
                        Dimension::City => &self.city,
                        Dimension::Region => &self.region,
                        Dimension::Device => &self.device,
                        Dimension::Browser => &self.browser,
                        Dimension::Os => &self.os,
                        Dimension::UtmSource => &self.utm_source,
                        Dimension::UtmMedium => &self.utm_medium,
                        Dimension::UtmCampaign => &self.utm_campaign,
                        Dimension::EntryPage => &self.entry_page,
                        Dimension::ExitPage => &self.exit_page,
                        Dimension::Channel => &self.channel,
                    };
                    Some((dimension.as_str(), value.as_deref()?))
                };
                Dimension::ALL.into_iter().filter_map(given).collect()
            }

            /// The shared parameters, without a metric, a series and a breakdown.
            fn shared(&self) -> domain::analytics::RawMetricQuery<'_> {
                domain::analytics::RawMetricQuery {
                    days: domain::analytics::RawDays::new(
                        self.period.as_deref(),
                        self.from.as_deref(),
                        self.to.as_deref(),
                    ),
                    filters: self.filters.as_deref(),
                    filter: self.filter(),
                    limit: self.limit,
                    compare: self.compare,
                    ..Default::default()
                }
            }
        }
    };
}

pub(super) use metric_parameters;
