import { expect, test } from "vitest";
import { decoded, ingressFacts, ingressRoutes, serviceFacts, servicePorts } from "./model.ts";

test("a Service says where it is and which pods it selects", () => {
  const service = {
    spec: {
      type: "LoadBalancer",
      clusterIPs: ["10.96.0.7"],
      selector: { app: "web" },
      ports: [
        { port: 80, targetPort: "http", nodePort: 30080 },
        { port: 53, protocol: "UDP" },
      ],
    },
    status: { loadBalancer: { ingress: [{ ip: "192.0.2.7" }] } },
  };
  const facts = Object.fromEntries(serviceFacts(service));
  expect(facts["Cluster address"]).toBe("10.96.0.7");
  expect(facts["External addresses"]).toBe("192.0.2.7");
  expect(facts["Selects pods with"]).toBe("app=web");
  expect(servicePorts(service)).toEqual([
    ["—", "80/TCP", "http", "30080"],
    ["—", "53/UDP", "53", "—"],
  ]);
  expect(servicePorts({})).toEqual([]);
});

test("an Ingress has a route per path", () => {
  const backend = { service: { name: "web", port: { number: 80 } } };
  const ingress = {
    spec: {
      tls: [{ hosts: ["a.example"], secretName: "cert" }],
      rules: [
        { host: "a.example", http: { paths: [{ path: "/x", pathType: "Exact", backend }] } },
        { http: { paths: [{ backend: { resource: { kind: "Bucket", name: "b" } } }] } },
      ],
    },
  };
  expect(ingressRoutes(ingress)).toEqual([
    { host: "a.example", path: "/x exactly", backend: "web:80", service: "web" },
    { host: "any host", path: "/", backend: "Bucket b", service: undefined },
  ]);
  expect(Object.fromEntries(ingressFacts(ingress)).TLS).toBe("a.example (cert)");
});

test("values of Secrets are text, or have a length", () => {
  expect(decoded(btoa("plain"))).toEqual({ text: "plain", bytes: 5 });
  expect(decoded("/w==")).toEqual({ bytes: 1 });
  expect(decoded("no base64!")).toEqual({ text: "no base64!", bytes: 10 });
});
