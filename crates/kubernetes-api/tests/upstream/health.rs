//! The checks that a server names.

use super::side::Side;
use super::world::run;

/// The checks of an endpoint, with any result.
async fn checks(side: &Side, endpoint: &str) -> Vec<String> {
    let text = side.get(&format!("/{endpoint}?verbose")).await.text;
    let names = text.lines().filter_map(|line| {
        let line = line.strip_prefix("[+]").or_else(|| line.strip_prefix("[-]"))?;
        Some(line.split(' ').next()?.to_owned())
    });
    names.collect()
}

#[test]
fn health_checks_have_the_names_and_order_of_kube_apiserver() {
    run(async |world| {
        for endpoint in ["healthz", "livez", "readyz"] {
            let real = checks(&world.real, endpoint).await;
            let mut drover = checks(&world.drover, endpoint).await;
            // kube-apiserver opens its port only when it has started.
            drover.retain(|name| name != "startup");
            let common: Vec<&String> = real.iter().filter(|name| drover.contains(name)).collect();
            assert_eq!(common, drover.iter().collect::<Vec<_>>(), "{endpoint}: {real:?}");
            assert!(drover.len() >= 8, "{endpoint}: {drover:?}");
            for name in &drover {
                let path = format!("/{endpoint}/{name}");
                let responses = [world.real.get(&path).await, world.drover.get(&path).await];
                let outcomes = responses.map(|response| (response.code, response.text));
                let ok = (200, "ok".to_owned());
                assert_eq!(outcomes, [ok.clone(), ok], "{path}");
            }
        }
    });
}
