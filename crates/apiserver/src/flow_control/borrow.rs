//! How the seats of the server are shared among priority levels. Pure.
//!
//! A level owns seats in proportion to its shares. It lends a part of those it does not need, and
//! borrows what others do not need, up to its limits.

/// Seats of one level, and what it needs of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Seats it owns.
    pub nominal: u32,
    /// Seats it always keeps.
    pub least: u32,
    /// Seats it may have at most.
    pub most: u32,
    /// Seats it could have used lately.
    pub demand: u32,
}

/// What a level's configuration says of its seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    pub shares: u32,
    /// Of its own seats, 0 to 100.
    pub lendable_percent: u32,
    /// Of its own seats; absent is without limit.
    pub borrowing_percent: Option<u32>,
}

/// The limits of levels among which `total` seats are divided. Demand is 0 in the result.
pub fn limits(total: u32, levels: &[Shares]) -> Vec<Level> {
    let sum: u64 = levels.iter().map(|level| u64::from(level.shares)).sum();
    let share = |level: &Shares| {
        let nominal = (u64::from(total) * u64::from(level.shares)).div_ceil(sum.max(1));
        let nominal = u32::try_from(nominal).unwrap_or(total);
        let percent = |percent: u32| {
            let seats = (u64::from(nominal) * u64::from(percent) + 50) / 100;
            u32::try_from(seats).unwrap_or(u32::MAX)
        };
        Level {
            nominal,
            least: nominal - percent(level.lendable_percent.min(100)),
            most: match level.borrowing_percent {
                Some(limit) => nominal.saturating_add(percent(limit)),
                None => nominal.saturating_add(total),
            },
            demand: 0,
        }
    };
    levels.iter().map(share).collect()
}

/// The seats that each level has now: first what it needs of its own, then what others leave, in
/// proportion to the seats owned; what nobody needs goes back to its owners.
pub fn allocate(total: u32, levels: &[Level]) -> Vec<u32> {
    let mut given: Vec<u32> =
        levels.iter().map(|level| level.demand.clamp(level.least, level.nominal)).collect();
    let mut spare = total.saturating_sub(given.iter().sum());
    let wanted = |level: &Level| level.demand.min(level.most);
    while spare > 0 {
        let hungry: Vec<usize> =
            (0..levels.len()).filter(|i| given[*i] < wanted(&levels[*i])).collect();
        let weights: u64 = hungry.iter().map(|i| u64::from(levels[*i].nominal.max(1))).sum();
        if hungry.is_empty() {
            break;
        }
        let round = spare;
        for i in hungry {
            let weight = u64::from(levels[i].nominal.max(1));
            let part = (u64::from(round) * weight / weights).max(1);
            let part = u32::try_from(part).unwrap_or(round).min(spare);
            let part = part.min(wanted(&levels[i]) - given[i]);
            given[i] += part;
            spare -= part;
        }
    }
    for (level, given) in levels.iter().zip(&mut given) {
        let back = level.nominal.saturating_sub(*given).min(spare);
        *given += back;
        spare -= back;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(shares: u32, lendable_percent: u32, borrowing_percent: Option<u32>) -> Shares {
        Shares { shares, lendable_percent, borrowing_percent }
    }

    /// Those of the suggested levels, in the order of their names; the figures are those that a
    /// kube-apiserver 1.36.3 shows in its metrics.
    #[test]
    fn seats_are_divided_as_kube_apiserver_divides_them() {
        let levels = [
            shares(5, 0, None),
            shares(20, 50, None),
            shares(10, 0, None),
            shares(40, 25, None),
            shares(30, 33, None),
            shares(40, 50, None),
            shares(100, 90, None),
        ];
        let limits = limits(600, &levels);
        let nominal: Vec<u32> = limits.iter().map(|level| level.nominal).collect();
        assert_eq!(nominal, [13, 49, 25, 98, 74, 98, 245]);
        let catch_all = limits[0];
        assert_eq!((catch_all.least, catch_all.most), (13, 613));
        let workload_low = limits[6];
        assert_eq!((workload_low.least, workload_low.most), (24, 845));
    }

    #[test]
    fn idle_levels_lend_what_they_may_and_keep_the_rest() {
        let mut levels = limits(100, &[shares(50, 50, None), shares(50, 0, None)]);
        levels[1].demand = 500;
        assert_eq!(allocate(100, &levels), [25, 75]);
        levels[0].demand = 40;
        assert_eq!(allocate(100, &levels), [40, 60]);
        levels[0].demand = 500;
        assert_eq!(allocate(100, &levels), [50, 50]);
        levels[1].demand = 0;
        assert_eq!(allocate(100, &levels), [50, 50], "the other lends nothing");
    }

    #[test]
    fn nobody_borrows_above_the_limit_and_what_is_left_goes_back() {
        let mut levels = limits(100, &[shares(50, 100, None), shares(50, 0, Some(20))]);
        levels[1].demand = 500;
        assert_eq!(allocate(100, &levels), [40, 60]);
        levels[1].demand = 0;
        assert_eq!(allocate(100, &levels), [50, 50]);
    }

    #[test]
    fn a_level_without_shares_has_no_seats_of_its_own() {
        let limits = limits(100, &[shares(0, 0, Some(0)), shares(10, 0, None)]);
        assert_eq!((limits[0].nominal, limits[0].most), (0, 0));
        assert_eq!(allocate(100, &limits), [0, 100]);
    }
}
