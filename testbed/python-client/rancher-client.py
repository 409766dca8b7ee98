"""Walks every type of a management API with the published Python client for it, for tests.

    TOKEN=... rancher-client URL CA_FILE

The client knows no type: it builds itself from the schemas, and so do the bodies here. Prints one line for
each step that went well; anything unexpected ends the program.
"""

import os
import sys
import time

import rancher

PATIENCE = 60.0
# A text that no resource has anywhere.
NOWHERE = "zz-nowhere"
# Where a resource of its own has such a field, its type is shown in its place.
SHADOWED = "type"
# What a type needs beyond what its schema says.
NEEDED = {
    "clusterRoleTemplateBinding": {"roleTemplateId": "cluster-member"},
    "globalRoleBinding": {"globalRoleId": "user-base"},
    "kontainerDriver": {"url": "https://drivers.example/kontainer-engine-driver-walk"},
    "podSecurityAdmissionConfigurationTemplate": {"configuration": {"defaults": {"enforce": "baseline"}}},
    "podSecurityPolicyTemplate": {
        rule: {"rule": "RunAsAny"} for rule in ("fsGroup", "runAsUser", "seLinux", "supplementalGroups")
    },
    "projectRoleTemplateBinding": {"roleTemplateId": "project-member"},
    "roleTemplate": {"context": "cluster"},
}
# Fields that need not be there by themselves, but one of them must.
CHOSEN = {
    "clusterRoleTemplateBinding": ["userId"],
    "globalRoleBinding": ["userId"],
    "projectRoleTemplateBinding": ["userId"],
}


def expect(holds, instead):
    if not holds:
        raise AssertionError(f"unexpected: {instead}")


def eventually(check):
    """Until the check says nothing to complain of."""
    end = time.monotonic() + PATIENCE
    while complaint := check():
        expect(time.monotonic() < end, complaint)
        time.sleep(0.05)


def plain(value):
    """What was read, without what the client adds."""
    if isinstance(value, rancher.RestObject):
        return {key: plain(entry) for key, entry in vars(value).items() if not callable(entry)}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def inside(kind, around):
    """x of `around[x]`."""
    return kind[len(around) + 1 : -1] if kind.startswith(around + "[") else None


class Walk:
    def __init__(self, url, token, authority):
        self.client = rancher.Client(url=url + "/v3", token=token, verify=authority)
        self.types = self.client.schema.types
        self.places = {}
        self.requests = 0

    def fields(self, kind):
        return plain(self.types[kind].resourceFields)

    # What is read fits its schema, as clients in typed languages need it.

    def fits(self, kind, value, where):
        if value is None or kind in ("json", "intOrString"):
            return
        if (of := inside(kind, "array")) is not None:
            expect(isinstance(value, list), f"{where} is no list: {value}")
            for entry in value:
                self.fits(of, entry, where)
        elif (of := inside(kind, "map")) is not None:
            expect(isinstance(value, dict), f"{where} is no map: {value}")
            for entry in value.values():
                self.fits(of, entry, where)
        elif kind == "boolean":
            expect(isinstance(value, bool), f"{where} is no boolean: {value}")
        elif kind == "int":
            expect(isinstance(value, int) and not isinstance(value, bool), f"{where} is no number: {value}")
        elif kind == "float":
            expect(isinstance(value, (int, float)), f"{where} is no number: {value}")
        elif kind in self.types and not kind.startswith("reference"):
            expect(isinstance(value, dict), f"{where} is no {kind}: {value}")
            for name, field in self.fields(kind).items():
                self.fits(field["type"], value.get(name), f"{where}.{name}")
        else:
            expect(isinstance(value, str), f"{where} is no text: {value}")

    def is_sound(self, resource, where):
        shown = plain(resource)
        expect(shown.get("id") and shown.get("type") in self.types, f"{where} is {shown}")
        schema = self.types[shown["type"]]
        for name, field in self.fields(shown["type"]).items():
            expect(field["type"] != "password" or name not in shown, f"{where}.{name} is shown")
            self.fits(field["type"], shown.get(name), f"{where}.{name}")
        offered = plain(schema.resourceActions) if hasattr(schema, "resourceActions") else {}
        for name in shown.get("actions") or {}:
            expect(name in offered, f"{where} has the action {name}, its schema has {offered}")

    def lists(self):
        """Every collection, and each link of the first resource in it."""
        seen = 0
        for kind, schema in self.types.items():
            if not schema.listable:
                continue
            for resource in self.client.list(kind).data:
                self.is_sound(resource, f"{kind} {resource.id}")
            eventually(lambda kind=kind: self.follow(kind))
            seen += 1
        return seen

    def follow(self, kind):
        """The complaint of the first link that leads neither to a collection nor to a cluster's last hour. What is being
        removed may go meanwhile."""
        stays = lambda found: getattr(found, "state", None) != "removing"
        first = next(filter(stays, self.client.list(kind).data), None)
        links = plain(first.links) if first is not None else {}
        for name, link in links.items():
            if name in ("self", "update", "remove") or not link.startswith("http"):
                continue
            try:
                answer = self.client._get(link)
            except rancher.ApiError as refusal:
                # The cluster of the walk has no agent: what is inside it nobody can tell.
                if plain(refusal.error)["code"] == "ClusterUnavailable":
                    continue
                return f"{link}: {plain(refusal.error)}"
            expect(answer.type in ("collection", "clusterUsage"), f"{link} is {answer}")
        return None

    # Resources are made of what their schemas ask for.

    def sample(self, name, field):
        if field.get("options"):
            return field["options"][0]
        if field.get("min") is not None:
            return field["min"]
        return self.sample_of(name, field["type"])

    def sample_of(self, name, kind):
        simple = {
            "int": 1,
            "float": 0.5,
            "boolean": True,
            "json": {},
            "intOrString": 1,
            "base64": "YQ==",
            "hostname": "walk.example",
            "date": "2024-01-01T00:00:00Z",
        }
        if kind in simple:
            return simple[kind]
        if (of := inside(kind, "array")) is not None:
            return [self.sample_of(name, of)]
        if (of := inside(kind, "map")) is not None:
            return {"key": self.sample_of(name, of)}
        if (of := inside(kind, "reference")) is not None:
            return self.place(of.removeprefix("/v3/schemas/"))
        return self.body(kind) if kind in self.types else "walk"

    def body(self, kind):
        fields = self.fields(kind).items()
        chosen = CHOSEN.get(kind, [])
        wanted = {name: f for name, f in fields if f["create"] and (f.get("required") or name in chosen)}
        return {name: self.sample(name, field) for name, field in wanted.items()}

    def place(self, kind):
        """The id of a resource of the type."""
        if kind not in self.places:
            creatable = kind in self.types and self.types[kind].creatable and self.types[kind].listable
            self.places[kind] = self.make(kind, "place").id if creatable else NOWHERE
        return self.places[kind]

    def make(self, kind, called):
        body = self.body(kind)
        fields = self.fields(kind)
        if fields.get("name", {}).get("create"):
            body["name"] = f"{called}-{kind.lower()}"
        body.update(NEEDED.get(kind, {}))
        try:
            return self.client.create(kind, **body)
        except rancher.ApiError as refusal:
            raise AssertionError(f"{kind} {body}: {plain(refusal.error)}") from refusal

    # Its life.

    def live(self, kind):
        made = self.make(kind, "walk")
        self.is_sound(made, f"new {kind}")
        shown = self.read(kind, made.id)
        expect(shown is not None and shown.uuid == made.uuid, f"{kind} {made.id} is {shown}")
        self.is_sound(shown, f"{kind} {made.id}")
        if self.types[kind].updatable:
            self.change(kind, shown)
        if self.types[kind].listable:
            self.find(kind, made.id)
        if self.types[kind].deletable:
            self.remove(kind, made.id)

    def read(self, kind, own):
        if "GET" in self.types[kind].resourceMethods:
            return self.client.by_id(kind, own)
        return next((found for found in self.client.list(kind).data if found.id == own), None)

    def change(self, kind, shown):
        labels = plain(getattr(shown, "labels", None)) or {}
        labels["walked"] = "yes"
        changed = self.client.update(shown, labels=labels)
        expect(plain(changed.labels)["walked"] == "yes", f"{kind} {shown.id} is {changed}")
        again = self.client.by_id(kind, shown.id)
        expect(plain(again.labels)["walked"] == "yes", f"{kind} {shown.id} is {again}")

    def find(self, kind, own):
        """By every field that can be filtered, with each of its modifiers."""
        filters = {field: f["modifiers"] for field, f in plain(self.types[kind].collectionFilters).items()}

        def has(**asked):
            self.requests += 1
            return any(found.id == own for found in self.client.list(kind, **asked).data)

        def complaint():
            shown = plain(self.read(kind, own))
            texts = {}
            for field in filters:
                value = shown.get(field)
                if isinstance(value, (str, int)) and value != "" and field != SHADOWED:
                    texts[field] = str(value).lower() if isinstance(value, bool) else str(value)
            both = {}
            for field, value in texts.items():
                fitting = {"eq": value, "ne": NOWHERE, "in": [NOWHERE, value], "notin": [NOWHERE]}
                both.update({f"{field}_{word}": fitting[word] for word in filters[field]})
            if not has(**both):
                return f"{kind} {own} is not found by {both}: {shown}"
            # Each modifier must also leave out what does not fit: one for each field, each of them often.
            for turn, (field, value) in enumerate(texts.items()):
                word = filters[field][turn % len(filters[field])]
                other = {"eq": NOWHERE, "ne": value, "in": [NOWHERE], "notin": [NOWHERE, value]}[word]
                if has(**{f"{field}_{word}": other}):
                    return f"{kind} {own} is found by {field}_{word}={other}"
            return None

        eventually(complaint)

    def remove(self, kind, own):
        self.client.delete(self.client.by_id(kind, own))

        def still():
            left = self.client.by_id(kind, own)
            gone = left is None or getattr(left, "state", None) == "removing"
            return None if gone else f"{kind} {own} is not removed: {left}"

        eventually(still)


def main():
    url, authority = sys.argv[1:]
    walk = Walk(url, os.environ["TOKEN"], authority)
    expect(all(kind in walk.types for kind in ("cluster", "project", "user")), "not all schemas are there")
    print("ok schemas")
    cluster = walk.client.create("cluster", name="walk-place")
    walk.places["cluster"] = walk.places["namespace"] = cluster.id
    eventually(lambda: None if walk.client.reload(cluster).state == "pending" else "the cluster is not pending")
    project = walk.client.create("project", name="place", clusterId=cluster.id)
    walk.places["project"] = walk.client.wait_success(project).id

    def without_namespace():
        conditions = plain(walk.client.reload(project)).get("conditions") or []
        made = [c["status"] for c in conditions if c["type"] == "BackingNamespaceCreated"]
        return None if made == ["True"] else f"the project has no namespace: {conditions}"

    eventually(without_namespace)
    lived = 0
    for kind, schema in walk.types.items():
        # Where nothing can be listed there is no link to a collection, and this client creates there.
        if schema.creatable and schema.listable:
            walk.live(kind)
            lived += 1
    print("ok resources")
    listed = walk.lists()
    print("ok lists")
    print(f"{lived} types lived, {listed} lists, {walk.requests} filtered lists")


main()
