"""Does what Python programs do with the published Kubernetes client, for tests.

    python-client KUBECONFIG

Prints one line for each step that went well; anything unexpected ends the program.
"""

import json
import sys
import tempfile
import threading
import time

import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

NAMESPACE = "python"
PATIENCE = 60.0

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: python, labels: {made-by: yaml}}
data: {text: grüße}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: python}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: python}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: drums.py.example.com}
spec:
  group: py.example.com
  scope: Namespaced
  names: {plural: drums, singular: drum, kind: Drum, listKind: DrumList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {beats: {type: integer, maximum: 200}}}
            status: {type: object, properties: {playing: {type: boolean}}}
"""


def expect(holds, instead):
    if not holds:
        raise AssertionError(f"unexpected: {instead}")


def refused(code, call, *arguments, **named):
    """The refusal of a call that must be refused with this code."""
    try:
        answer = call(*arguments, **named)
    except ApiException as refusal:
        expect(refusal.status == code, refusal)
        return json.loads(refusal.body)
    raise AssertionError(f"not refused: {answer}")


def eventually(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it did not come true in time")
        time.sleep(0.05)


def create_from_yaml(api):
    client.CoreV1Api(api).create_namespace({"metadata": {"name": NAMESPACE}})
    made = utils.create_from_yaml(api, yaml_objects=list(yaml.safe_load_all(MANIFEST)))
    kinds = [one.kind for group in made for one in (group if isinstance(group, list) else [group])]
    expect(len(kinds) == 3, kinds)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(DEFINITION)
        file.flush()
        utils.create_from_yaml(api, file.name)
    read = client.CoreV1Api(api).read_namespaced_config_map("settings", NAMESPACE)
    expect(read.data == {"text": "grüße"} and read.metadata.creation_timestamp.tzinfo, read)
    try:
        utils.create_from_yaml(api, yaml_objects=list(yaml.safe_load_all(MANIFEST)))
    except utils.FailToCreateError as failed:
        expect([one.status for one in failed.api_exceptions] == [409, 409, 409], failed)
    else:
        raise AssertionError("created twice")


def lists(api):
    core = client.CoreV1Api(api)
    for number in range(5):
        metadata = {"name": f"page-{number}", "labels": {"made-by": "pages"}}
        core.create_namespaced_config_map(NAMESPACE, {"metadata": metadata})
    names, token, pages = [], None, 0
    while True:
        page = core.list_namespaced_config_map(
            NAMESPACE, label_selector="made-by=pages", limit=2, _continue=token
        )
        names += [one.metadata.name for one in page.items]
        pages, token = pages + 1, page.metadata._continue
        if not token:
            break
    expect(pages == 3 and names == [f"page-{n}" for n in range(5)], names)
    one = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=page-3")
    expect([item.metadata.name for item in one.items] == ["page-3"], one)
    deployments = client.AppsV1Api(api).list_deployment_for_all_namespaces()
    expect(any(item.metadata.name == "web" for item in deployments.items), deployments)


def watches(api):
    core = client.CoreV1Api(api)
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def change():
        core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "seen"}})
        core.patch_namespaced_config_map("seen", NAMESPACE, {"data": {"a": "b"}})
        core.delete_namespaced_config_map("seen", NAMESPACE)

    changes = threading.Thread(target=change)
    changes.start()
    told, watcher = [], watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=start, timeout_seconds=30
    ):
        told.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watcher.stop()
    changes.join()
    expect(told == [(kind, "seen") for kind in ("ADDED", "MODIFIED", "DELETED")], told)
    # Without a version it begins with what there is.
    first = next(watch.Watch().stream(core.list_namespaced_service, NAMESPACE, timeout_seconds=30))
    expect((first["type"], first["object"].metadata.name) == ("ADDED", "web"), first)


def patches(api):
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
    changed = apps.patch_namespaced_deployment("web", NAMESPACE, strategic)
    container = changed.spec.template.spec.containers[0]
    expect(container.image == "web:2" and container.resources.requests == {"cpu": "100m"}, container)
    operations = [{"op": "test", "path": "/data/text", "value": "grüße"},
                  {"op": "add", "path": "/data/more", "value": "1"}]
    changed = core.patch_namespaced_config_map("settings", NAMESPACE, operations)
    expect(changed.data == {"text": "grüße", "more": "1"}, changed.data)
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    eventually(lambda: apps.read_namespaced_deployment_status("web", NAMESPACE)
               .status.ready_replicas == 3)
    stale = core.read_namespaced_config_map("settings", NAMESPACE)
    core.patch_namespaced_config_map("settings", NAMESPACE, {"data": {"more": None}})
    refusal = refused(409, core.replace_namespaced_config_map, "settings", NAMESPACE, stale)
    expect(refusal["reason"] == "Conflict", refusal)


def dry_run(api):
    core = client.CoreV1Api(api)
    body = {"metadata": {"name": "dry"}, "data": {"a": "b"}}
    made = core.create_namespaced_config_map(NAMESPACE, body, dry_run="All")
    expect(made.metadata.uid and made.data == {"a": "b"}, made)
    refused(404, core.read_namespaced_config_map, "dry", NAMESPACE)
    changed = core.patch_namespaced_config_map(
        "settings", NAMESPACE, {"data": {"text": "dry"}}, dry_run="All"
    )
    expect(changed.data["text"] == "dry", changed)
    expect(core.read_namespaced_config_map("settings", NAMESPACE).data["text"] == "grüße", "kept")
    core.delete_namespaced_config_map("settings", NAMESPACE, dry_run="All")
    core.read_namespaced_config_map("settings", NAMESPACE)
    wrong = {"metadata": {"name": "Not_A_Name"}}
    refusal = refused(422, core.create_namespaced_config_map, NAMESPACE, wrong, dry_run="All")
    expect(refusal["details"]["causes"][0]["field"] == "metadata.name", refusal)
    refused(422, core.create_namespaced_config_map, NAMESPACE, body, dry_run="Some")


def dynamic_client(api):
    client_ = dynamic.DynamicClient(api)
    eventually(lambda: any(
        one.type == "Established" and one.status == "True"
        for one in (client.ApiextensionsV1Api(api)
                    .read_custom_resource_definition("drums.py.example.com").status.conditions)
    ))
    client_.resources.invalidate_cache()
    drums = client_.resources.get(api_version="py.example.com/v1", kind="Drum")
    body = {"apiVersion": "py.example.com/v1", "kind": "Drum",
            "metadata": {"name": "snare"}, "spec": {"beats": 90}}
    made = drums.create(body=body, namespace=NAMESPACE)
    expect(made.spec.beats == 90 and made.metadata.generation == 1, made)
    changed = drums.patch(name="snare", namespace=NAMESPACE, body={"spec": {"beats": 120}},
                          content_type="application/merge-patch+json")
    expect(changed.spec.beats == 120 and changed.metadata.generation == 2, changed)
    playing = drums.status.patch(name="snare", namespace=NAMESPACE,
                                 body={"status": {"playing": True}},
                                 content_type="application/merge-patch+json")
    expect(playing.status.playing and playing.metadata.generation == 2, playing)
    for error, call in [
        (UnprocessibleEntityError, lambda: drums.create(namespace=NAMESPACE, body={
            **body, "metadata": {"name": "fast"}, "spec": {"beats": 500}})),
        (ConflictError, lambda: drums.create(namespace=NAMESPACE, body=body)),
        (NotFoundError, lambda: drums.get(name="none", namespace=NAMESPACE)),
    ]:
        try:
            call()
        except error:
            continue
        raise AssertionError(f"no {error.__name__}")
    event = next(iter(drums.watch(namespace=NAMESPACE, timeout=30)))
    expect(event["type"] == "ADDED" and event["object"].metadata.name == "snare", event)
    expect([one.metadata.name for one in drums.get(namespace=NAMESPACE).items] == ["snare"], "list")
    drums.delete(name="snare", namespace=NAMESPACE)
    nodes = client_.resources.get(api_version="v1", kind="Node").get()
    expect(len(nodes.items) == 2, nodes)


def deletion(api):
    core = client.CoreV1Api(api)
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="made-by=pages")
    left = core.list_namespaced_config_map(NAMESPACE, label_selector="made-by=pages")
    expect(left.items == [], left)
    client.AppsV1Api(api).delete_namespaced_deployment(
        "web", NAMESPACE, propagation_policy="Foreground"
    )
    eventually(lambda: not core.list_namespaced_pod(NAMESPACE).items)
    core.delete_namespace(NAMESPACE)

    def gone():
        try:
            core.read_namespace(NAMESPACE)
        except ApiException as refusal:
            return refusal.status == 404
        return False

    eventually(gone)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python-client KUBECONFIG")
    api = config.new_client_from_config(sys.argv[1])
    expect(client.VersionApi(api).get_code().git_version.startswith("v1."), "a version")
    for name, step in [
        ("yaml", create_from_yaml),
        ("lists", lists),
        ("watches", watches),
        ("patches", patches),
        ("dry run", dry_run),
        ("dynamic", dynamic_client),
        ("deletion", deletion),
    ]:
        step(api)
        print("ok", name, flush=True)


if __name__ == "__main__":
    main()
