//! Histograms as a record stores them: HdrHistogram V2, compressed, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quantiles that every latency table holds, with their names in the JSON contract.
pub const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// Why a histogram could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// It could not be written.
    #[error("the histogram could not be encoded: {0}")]
    Encode(String),
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a compressed V2 histogram.
    #[error("the histogram is not HdrHistogram V2 (compressed): {0}")]
    Decode(String),
    /// Two histograms could not be merged.
    #[error("histograms could not be merged: {0}")]
    Merge(String),
}

/// A histogram of nanoseconds: HdrHistogram V2, compressed, base64.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// A percentile is shown only with at least this number of requests beyond it.
pub const BEYOND: f64 = 100.0;
/// An epoch has a percentile only with at least this number of requests beyond it. An epoch with most rounds disturbed may have fewer, which is too
/// few to show a tail. A separate check requires that the plan of a scenario provides [`BEYOND`] requests.
pub const FEWEST_BEYOND: f64 = BEYOND / 2.0;

/// Number of `count` requests that lie beyond a quantile from 0 to 1. A small allowance is added because 1 - 0.99 is not exactly 0.01 in floating
/// point.
pub fn beyond(count: f64, quantile: f64) -> f64 {
    count * (1.0 - quantile) + 1e-6
}

/// Latency quantiles in nanoseconds. A percentile is null with fewer than 100 requests beyond it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// Lowest.
    pub min: Option<u64>,
    /// Mean.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 75th percentile.
    pub p75: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    pub p99_99: Option<u64>,
    /// Highest.
    pub max: Option<u64>,
}

impl Quantiles {
    /// The table of a histogram of nanoseconds, without percentiles that have fewer than [`BEYOND`] requests beyond them.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let count = histogram.len() as f64;
        let some = |value: u64| (count > 0.0).then_some(value);
        let at = |q: f64| (beyond(count, q) >= BEYOND).then(|| histogram.value_at_quantile(q));
        let [p50, p75, p90, p95, p99, p99_9, p99_99] = QUANTILES.map(|(_, q)| at(q));
        let (min, mean) = (some(histogram.min()), some(histogram.mean().round() as u64));
        Self { min, mean, p50, p75, p90, p95, p99, p99_9, p99_99, max: some(histogram.max()) }
    }
}

/// Steps of [`curve`] per nine: 0.9, 0.99, 0.999.
const STEPS: i32 = 20;

/// Pairs of quantile (0 to 1) and nanoseconds, in ascending order. The steps are equal in nines, the logarithm of the share beyond the quantile. The
/// curve ends where fewer than [`BEYOND`] requests lie beyond. It includes the quantiles of [`QUANTILES`].
pub fn curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let count = histogram.len() as f64;
    let enough = |q: &f64| beyond(count, *q) >= BEYOND;
    let steps = (0..).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(STEPS))).take_while(enough);
    let mut all: Vec<f64> = QUANTILES.iter().map(|(_, q)| *q).filter(enough).chain(steps).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|one, before| (*one - *before).abs() < 1e-9 * (1.0 - *before));
    all.into_iter().map(|q| (q, histogram.value_at_quantile(q))).collect()
}

impl EncodedHistogram {
    /// Encodes a histogram of nanoseconds.
    pub fn encode(histogram: &Histogram<u64>) -> Result<Self, HistogramError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .map_err(|error| HistogramError::Encode(format!("{error:?}")))?;
        Ok(Self(STANDARD.encode(bytes)))
    }

    /// Decodes what [`Self::encode`] wrote.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = STANDARD.decode(&self.0)?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Decode(format!("{error:?}")))
    }

    /// Merges histograms into one; none if there are none. An empty text stands for a contender that was not loaded.
    pub fn merge<'a>(
        all: impl IntoIterator<Item = &'a Self>,
    ) -> Result<Option<Histogram<u64>>, HistogramError> {
        let mut merged: Option<Histogram<u64>> = None;
        for encoded in all.into_iter().filter(|encoded| !encoded.0.is_empty()) {
            let one = encoded.decode()?;
            match &mut merged {
                None => merged = Some(one),
                Some(sum) => sum.add(&one).map_err(|error| HistogramError::Merge(format!("{error:?}")))?,
            }
        }
        Ok(merged)
    }
}
