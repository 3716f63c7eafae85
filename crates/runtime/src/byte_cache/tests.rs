use super::ByteCache;

fn held(cache: &mut ByteCache<u32, u32>, keys: &[u32]) -> Vec<u32> {
    let found = keys.iter().filter(|key| cache.get(key).is_some());
    found.copied().collect()
}

#[test]
fn least_recently_used_entry_is_evicted_first() {
    let mut cache = ByteCache::new(80);
    for key in 0..8 {
        cache.insert(key, key, 10);
    }
    assert_eq!(cache.get(&0), Some(0), "used again");
    cache.insert(8, 8, 10);
    assert_eq!(held(&mut cache, &[0, 1, 2, 7, 8]), [0, 2, 7, 8]);
}

#[test]
fn the_bytes_never_exceed_the_bound() {
    let mut cache = ByteCache::new(100);
    for key in 0..200_u32 {
        cache.insert(key % 37, key, (key as usize * 7) % 60);
        let sum: usize = cache.entries.values().map(|entry| entry.bytes).sum();
        assert!(sum <= 100, "{sum}");
        assert_eq!(sum, cache.bytes);
    }
    cache.retain(|key| key % 2 == 0);
    let sum: usize = cache.entries.values().map(|entry| entry.bytes).sum();
    assert_eq!(sum, cache.bytes);
}

#[test]
fn value_larger_than_the_cache_is_not_cached_and_evicts_nothing() {
    let mut cache = ByteCache::new(100);
    cache.insert(1, 1, 50);
    cache.insert(2, 2, 101);
    assert_eq!(held(&mut cache, &[1, 2]), [1]);
}
