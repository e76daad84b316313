//! Dates as ISO 8601, as precise as their unit.

use brickmap::{TimeBase, TimeUnit};

/// A count of `unit` since 1970 as text; dates of no unit have none.
pub(super) fn date(count: i64, unit: TimeUnit) -> Option<String> {
    if count == i64::MIN {
        return Some("NaT".into());
    }
    let count = i128::from(count) * i128::from(unit.multiplier());
    // Units in a day, or how many decimals the seconds have.
    let (per_day, decimals) = match unit.base() {
        TimeBase::Generic => return None,
        TimeBase::Year => return Some(year(1970 + count)),
        TimeBase::Month => {
            return Some(format!("{}-{:02}", year(1970 + count.div_euclid(12)), count.rem_euclid(12) + 1));
        }
        TimeBase::Week => return Some(day(count * 7)),
        TimeBase::Day => return Some(day(count)),
        TimeBase::Hour => (24, 0),
        TimeBase::Minute => (1440, 0),
        TimeBase::Second => (86_400, 0),
        TimeBase::Millisecond => (86_400_000, 3),
        TimeBase::Microsecond => (86_400_000_000, 6),
        TimeBase::Nanosecond => (86_400 * 10i128.pow(9), 9),
        TimeBase::Picosecond => (86_400 * 10i128.pow(12), 12),
        TimeBase::Femtosecond => (86_400 * 10i128.pow(15), 15),
        TimeBase::Attosecond => (86_400 * 10i128.pow(18), 18),
    };
    let date = day(count.div_euclid(per_day));
    let rest = count.rem_euclid(per_day);
    Some(match per_day {
        24 => format!("{date}T{rest:02}"),
        1440 => format!("{date}T{:02}:{:02}", rest / 60, rest % 60),
        _ => {
            let second = 10i128.pow(decimals);
            let (seconds, fraction) = (rest / second, rest % second);
            let time = format!("{date}T{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
            let digits = decimals as usize;
            if digits == 0 { time } else { format!("{time}.{fraction:0digits$}") }
        }
    })
}

fn year(year: i128) -> String {
    if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") }
}

/// A number of days since 1970 in the Gregorian calendar, after Howard Hinnant's `civil_from_days`
/// (howardhinnant.github.io/date_algorithms.html).
fn day(days: i128) -> String {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{}-{month:02}-{day:02}", self::year(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(count: i64, base: TimeBase) -> String {
        date(count, base.into()).unwrap()
    }

    #[test]
    fn dates_look_as_in_numpy() {
        assert_eq!(text(50, TimeBase::Year), "2020");
        assert_eq!(text(-1, TimeBase::Month), "1969-12");
        assert_eq!(text(1, TimeBase::Week), "1970-01-08");
        assert_eq!(text(18_321, TimeBase::Day), "2020-02-29");
        assert_eq!(text(-719_529, TimeBase::Day), "-0001-12-31");
        assert_eq!(text(25, TimeBase::Hour), "1970-01-02T01");
        assert_eq!(text(-1, TimeBase::Second), "1969-12-31T23:59:59");
        assert_eq!(text(1, TimeBase::Attosecond), "1970-01-01T00:00:00.000000000000000001");
        assert_eq!(text(i64::MIN, TimeBase::Nanosecond), "NaT");
        assert_eq!(
            date(3, TimeUnit::new(25, TimeBase::Millisecond).unwrap()).unwrap(),
            "1970-01-01T00:00:00.075"
        );
        assert_eq!(date(3, TimeBase::Generic.into()), None);
    }
}
