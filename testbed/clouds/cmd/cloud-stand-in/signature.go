package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"
)

const (
	algorithm   = "AWS4-HMAC-SHA256"
	tokenPrefix = "k8s-aws-v1."
	timeForm    = "20060102T150405Z"
	clockSkew   = 15 * time.Minute
)

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

func code(key []byte, text string) []byte {
	made := hmac.New(sha256.New, key)
	made.Write([]byte(text))
	return made.Sum(nil)
}

// signature is the one of version 4 for a request with the path "/".
func signature(
	method, date, service string, query url.Values, headers http.Header, signed []string, body string,
) string {
	var names []string
	for name := range query {
		names = append(names, name)
	}
	sort.Strings(names)
	escape := func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, escape(name)+"="+escape(query.Get(name)))
	}
	var lines []string
	for _, name := range signed {
		lines = append(lines, name+":"+strings.TrimSpace(headers.Get(name))+"\n")
	}
	request := strings.Join([]string{
		method, "/", strings.Join(pairs, "&"), strings.Join(lines, ""), strings.Join(signed, ";"), sum(body),
	}, "\n")
	scope := strings.Join([]string{date[:8], region, service, "aws4_request"}, "/")
	key := code([]byte("AWS4"+secretKey), date[:8])
	for _, part := range []string{region, service, "aws4_request"} {
		key = code(key, part)
	}
	return hex.EncodeToString(code(key, strings.Join([]string{algorithm, date, scope, sum(request)}, "\n")))
}

func isNow(date string) bool {
	at, err := time.Parse(timeForm, date)
	return err == nil && time.Since(at).Abs() < clockSkew
}

// refusal says what is wrong with the signature of a request; nothing: it is
// right.
func refusal(r *http.Request, service, body string) (string, string) {
	given := r.Header.Get("Authorization")
	parts := map[string]string{}
	for _, part := range strings.Split(strings.TrimPrefix(given, algorithm+" "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	date := r.Header.Get("X-Amz-Date")
	if parts["Signature"] == "" || len(date) < 8 {
		return "MissingAuthenticationToken", "Request is missing Authentication Token"
	}
	scope := strings.Join([]string{accessKey, date[:8], region, service, "aws4_request"}, "/")
	if parts["Credential"] != scope {
		return "InvalidClientTokenId", "The security token included in the request is invalid."
	}
	if !isNow(date) {
		return "RequestExpired", "Signature expired"
	}
	headers := r.Header.Clone()
	headers.Set("Host", r.Host)
	signed := strings.Split(parts["SignedHeaders"], ";")
	expected := signature(r.Method, date, service, r.URL.Query(), headers, signed, body)
	if expected != parts["Signature"] {
		return "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
	}
	return "", ""
}

// isTokenOf says whether a token is for the cluster: a request to the token
// service, signed with the key of the account, that names the cluster.
func isTokenOf(cluster, token string) bool {
	encoded, found := strings.CutPrefix(token, tokenPrefix)
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if !found || err != nil {
		return false
	}
	url, err := url.Parse(string(text))
	host := fmt.Sprintf("sts.%s.amazonaws.com", region)
	if err != nil || url.Scheme != "https" || url.Host != host || url.Path != "/" {
		return false
	}
	query := url.Query()
	given, date := query.Get("X-Amz-Signature"), query.Get("X-Amz-Date")
	query.Del("X-Amz-Signature")
	if query.Get("Action") != "GetCallerIdentity" || !isNow(date) {
		return false
	}
	headers := http.Header{"Host": {host}, "X-K8s-Aws-Id": {cluster}}
	signed := strings.Split(query.Get("X-Amz-SignedHeaders"), ";")
	return given == signature(http.MethodGet, date, "sts", query, headers, signed, "")
}
