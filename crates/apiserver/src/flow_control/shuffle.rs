//! Shuffle sharding: each flow may use a few queues out of many, so that two flows seldom share all
//! of theirs.

/// Most cards in one hand.
pub const HAND_MAX: usize = 16;

/// Draws `hand` different numbers below `deck` by `hash`, evenly spread over hashes.
///
/// `hand` above [`HAND_MAX`] or above `deck` is cut.
pub fn deal(mut hash: u64, deck: usize, hand: usize) -> impl Iterator<Item = usize> {
    let size = hand.min(HAND_MAX).min(deck);
    // Those drawn so far, in ascending order.
    let mut drawn = [0_usize; HAND_MAX];
    for count in 0..size {
        let left = (deck - count) as u64;
        let mut card = (hash % left) as usize;
        hash /= left;
        let mut position = 0;
        while position < count && card >= drawn[position] {
            card += 1;
            position += 1;
        }
        drawn.copy_within(position..count, position + 1);
        drawn[position] = card;
    }
    drawn.into_iter().take(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_has_different_cards_of_the_deck() {
        for (deck, hand) in [(1, 1), (16, 4), (128, 6), (3, 3), (2, 8)] {
            for seed in 0..500_u64 {
                let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut cards: Vec<usize> = deal(hash, deck, hand).collect();
                assert!(cards.iter().all(|card| *card < deck), "{cards:?} of {deck}");
                cards.dedup();
                assert_eq!(cards.len(), hand.min(deck));
            }
        }
    }

    #[test]
    fn every_card_is_dealt_about_as_often_as_every_other() {
        let mut counts = [0_u32; 16];
        for seed in 0..16_000_u64 {
            let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed << 17);
            deal(hash, 16, 4).for_each(|card| counts[card] += 1);
        }
        assert!(counts.iter().all(|count| (3_500..4_500).contains(count)), "{counts:?}");
    }
}
