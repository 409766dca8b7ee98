//! How the seats of the server are divided among priority levels. Pure.
//!
//! A level owns seats in proportion to its shares. It lends a part of the seats that it does not
//! need, and borrows seats that others do not need, up to its limits. Follows the concurrency
//! borrowing of Kubernetes' API priority and fairness.

/// The seat limits of one level, and its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatLimits {
    /// Seats it owns.
    pub nominal: u32,
    /// Seats that it never lends.
    pub least: u32,
    /// Seats it may have at most.
    pub most: u32,
    /// Seats that it could have used lately.
    pub demand: u32,
}

/// What the configuration of a level says about its seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// `nominalConcurrencyShares`: relative to the sum of all levels.
    pub shares: u32,
    /// `lendablePercent`: of its own seats, 0 to 100.
    pub lendable_percent: u32,
    /// `borrowingLimitPercent`: of its own seats; `None` is no limit.
    pub borrowing_percent: Option<u32>,
}

/// The limits of the levels when `total` seats are divided among them, in the order of `levels`.
/// Demand is 0 in the result.
pub fn limits(total: u32, levels: &[Shares]) -> Vec<SeatLimits> {
    let sum: u64 = levels.iter().map(|level| u64::from(level.shares)).sum();
    let share = |level: &Shares| {
        let nominal = (u64::from(total) * u64::from(level.shares)).div_ceil(sum.max(1));
        let nominal = u32::try_from(nominal).unwrap_or(total);
        let percent = |percent: u32| {
            let seats = (u64::from(nominal) * u64::from(percent) + 50) / 100;
            u32::try_from(seats).unwrap_or(u32::MAX)
        };
        SeatLimits {
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

/// The seats that each level has now, in the order of `levels`: first what it needs of its own
/// seats, then what others leave, in proportion to the seats owned. Seats that no level needs
/// return to their owners. The sum exceeds `total` only by the rounding of owned seats.
pub fn allocate(total: u32, levels: &[SeatLimits]) -> Vec<u32> {
    let mut given: Vec<u32> =
        levels.iter().map(|level| level.demand.clamp(level.least, level.nominal)).collect();
    let mut spare = total.saturating_sub(given.iter().sum());
    let desired = |level: &SeatLimits| level.demand.min(level.most);
    while spare > 0 {
        let hungry: Vec<usize> =
            (0..levels.len()).filter(|i| given[*i] < desired(&levels[*i])).collect();
        let weights: u64 = hungry.iter().map(|i| u64::from(levels[*i].nominal.max(1))).sum();
        if hungry.is_empty() {
            break;
        }
        let round = spare;
        for i in hungry {
            let weight = u64::from(levels[i].nominal.max(1));
            let part = (u64::from(round) * weight / weights).max(1);
            let part = u32::try_from(part).unwrap_or(round).min(spare);
            let part = part.min(desired(&levels[i]) - given[i]);
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

    /// The suggested levels, ordered by name. The figures are those that kube-apiserver 1.36.3
    /// reports in its metrics.
    #[test]
    fn seats_are_divided_like_kube_apiserver_divides_them() {
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
    fn idle_levels_lend_their_lendable_seats_and_no_more() {
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
    fn no_level_borrows_above_its_limit_and_unused_seats_return_to_their_owners() {
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
