//! Resource quantities: `500m`, `1.5Gi`, `2e3`. Parsed exactly, compared by value, printed
//! canonically.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The smallest unit is a billionth.
const NANO: i128 = 1_000_000_000;
/// Larger values are cut here; kube-apiserver's numbers end at about the same value.
const VALUE_MAX: i128 = i64::MAX as i128 * NANO;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    Binary,
    Decimal,
    Exponent,
}

/// A quantity. Equality and order are by value: `1000m` equals `1`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In billionths.
    nano: i128,
    format: QuantityFormat,
}

/// The text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
/// The text is no quantity.
pub struct QuantityError;

impl Quantity {
    /// A quantity of whole units.
    pub fn from_whole(value: i64) -> Self {
        Self { nano: i128::from(value) * NANO, format: QuantityFormat::Decimal }
    }
    /// Whole units, rounded up.
    pub fn value(&self) -> i64 {
        let whole = self.nano.div_euclid(NANO) + i128::from(self.nano.rem_euclid(NANO) > 0);
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }
    /// Thousandths, rounded up.
    pub fn milli_value(&self) -> i64 {
        let step = NANO / 1000;
        let milli = self.nano.div_euclid(step) + i128::from(self.nano.rem_euclid(step) > 0);
        i64::try_from(milli).unwrap_or(if milli < 0 { i64::MIN } else { i64::MAX })
    }
    /// Whether the quantity is less than 0.
    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }
    /// The sum, printed in the format of `self`.
    pub fn plus(&self, other: &Self) -> Self {
        let nano = (self.nano + other.nano).clamp(-VALUE_MAX, VALUE_MAX);
        Self { nano, format: self.format }
    }
    /// The difference, printed in the format of `self`.
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { nano: -other.nano, format: other.format })
    }
    /// Whole units; `None` for a fraction, and beyond 64 bits.
    pub fn whole(&self) -> Option<i64> {
        (self.nano % NANO == 0).then(|| i64::try_from(self.nano / NANO).ok())?
    }
    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        self.nano as f64 / NANO as f64
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError);
        }
        let (format, base, power) = parse_suffix(suffix).ok_or(QuantityError)?;
        let nano = scaled(whole, fraction, base, power);
        Ok(Self { nano: if negative { -nano } else { nano }, format })
    }
}

/// Format, base and power of a suffix.
fn parse_suffix(suffix: &str) -> Option<(QuantityFormat, i128, i32)> {
    Some(match suffix {
        "" => (QuantityFormat::Decimal, 10, 0),
        "n" => (QuantityFormat::Decimal, 10, -9),
        "u" => (QuantityFormat::Decimal, 10, -6),
        "m" => (QuantityFormat::Decimal, 10, -3),
        "k" => (QuantityFormat::Decimal, 10, 3),
        "M" => (QuantityFormat::Decimal, 10, 6),
        "G" => (QuantityFormat::Decimal, 10, 9),
        "T" => (QuantityFormat::Decimal, 10, 12),
        "P" => (QuantityFormat::Decimal, 10, 15),
        "E" => (QuantityFormat::Decimal, 10, 18),
        "Ki" => (QuantityFormat::Binary, 2, 10),
        "Mi" => (QuantityFormat::Binary, 2, 20),
        "Gi" => (QuantityFormat::Binary, 2, 30),
        "Ti" => (QuantityFormat::Binary, 2, 40),
        "Pi" => (QuantityFormat::Binary, 2, 50),
        "Ei" => (QuantityFormat::Binary, 2, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            // A value with more than three digits is cut in any case.
            let power: i32 =
                exponent.parse().unwrap_or(if exponent.starts_with('-') { -999 } else { 999 });
            (QuantityFormat::Exponent, 10, power.clamp(-999, 999))
        }
    })
}

/// Digits that count; with the largest binary factor they still fit the integer type.
const SIGNIFICANT_MAX: usize = 20;

/// `whole.fraction × base^power` in billionths, rounded up, cut at [`VALUE_MAX`].
fn scaled(whole: &str, fraction: &str, base: i128, power: i32) -> i128 {
    let (factor, shift) = if base == 2 { (1_i128 << power, 0) } else { (1, power) };
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return 0;
    }
    let (kept, dropped) = significant.split_at(significant.len().min(SIGNIFICANT_MAX));
    let value: i128 = kept.parse().expect("few enough digits");
    let inexact = dropped.bytes().any(|digit| digit != b'0');
    let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX / 4);
    // The value is digits × 10^(-fraction) × 10^shift × factor; in billionths nine more.
    let scale = 9 + shift - length(fraction) + length(dropped);
    finish(value, factor, scale, inexact)
}

fn finish(value: i128, factor: i128, scale: i32, inexact: bool) -> i128 {
    let Some(product) = value.checked_mul(factor) else { return VALUE_MAX };
    if scale >= 0 {
        let power = 10_i128.checked_pow(scale.unsigned_abs());
        let product = power.and_then(|power| product.checked_mul(power));
        let value = product.and_then(|product| product.checked_add(i128::from(inexact)));
        return value.unwrap_or(VALUE_MAX).min(VALUE_MAX);
    }
    match 10_i128.checked_pow(scale.unsigned_abs()) {
        Some(power) => {
            let up = i128::from(inexact || product % power != 0);
            (product / power + up).min(VALUE_MAX)
        }
        // Smaller than the smallest unit, and not zero.
        None => 1,
    }
}

impl fmt::Display for Quantity {
    /// The canonical text: no fraction, and the largest suffix that represents it exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut format = self.format;
        if format == QuantityFormat::Binary && self.nano.abs() < 1024 * NANO {
            format = QuantityFormat::Decimal;
        }
        if self.nano == 0 {
            return f.write_str("0");
        }
        if format == QuantityFormat::Binary {
            const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
            let mut value = self.nano.div_euclid(NANO) + i128::from(self.nano % NANO > 0);
            let mut step = 0;
            while value % 1024 == 0 && step + 1 < SUFFIXES.len() {
                value /= 1024;
                step += 1;
            }
            return write!(f, "{value}{}", SUFFIXES[step]);
        }
        const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let mut value = self.nano;
        let mut step = 0;
        while value % 1000 == 0 && step + 1 < SUFFIXES.len() {
            value /= 1000;
            step += 1;
        }
        if format == QuantityFormat::Exponent && step != 3 {
            let exponent = i32::try_from(step).unwrap_or(0) * 3 - 9;
            return write!(f, "{value}e{exponent}");
        }
        write!(f, "{value}{}", SUFFIXES[step])
    }
}

/// The canonical text of a quantity that is JSON text or a number; `None` when it is no quantity.
pub fn canonical(value: &serde_json::Value) -> Option<String> {
    let text = match value {
        serde_json::Value::String(text) => text.trim().to_owned(),
        serde_json::Value::Number(number) => number.to_string(),
        _ => return None,
    };
    text.parse::<Quantity>().ok().map(|quantity| quantity.to_string())
}
