//! The checks that a server names.

use super::side::Side;
use super::world::run;

/// The checks of an endpoint, whatever they say.
async fn checks(side: &Side, endpoint: &str) -> Vec<String> {
    let text = side.get(&format!("/{endpoint}?verbose")).await.text;
    let names = text.lines().filter_map(|line| {
        let line = line.strip_prefix("[+]").or_else(|| line.strip_prefix("[-]"))?;
        Some(line.split(' ').next()?.to_owned())
    });
    names.collect()
}

#[test]
fn checks_have_the_names_and_the_order_that_they_have_at_kube_apiserver() {
    run(async |world| {
        for endpoint in ["healthz", "livez", "readyz"] {
            let real = checks(&world.real, endpoint).await;
            let mut ours = checks(&world.ours, endpoint).await;
            // kube-apiserver opens its port only when it has started.
            ours.retain(|name| name != "startup");
            let common: Vec<&String> = real.iter().filter(|name| ours.contains(name)).collect();
            assert_eq!(common, ours.iter().collect::<Vec<_>>(), "{endpoint}: {real:?}");
            assert!(ours.len() >= 8, "{endpoint}: {ours:?}");
            for name in &ours {
                let path = format!("/{endpoint}/{name}");
                let answers = [world.real.get(&path).await, world.ours.get(&path).await];
                let outcomes = answers.map(|answer| (answer.code, answer.text));
                let ok = (200, "ok".to_owned());
                assert_eq!(outcomes, [ok.clone(), ok], "{path}");
            }
        }
    });
}
