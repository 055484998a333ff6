package clitest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cloudshare/cloudshare/api/wire"
)

// Broker returns the URL of a fake broker that answers like one that knows the job site-1.1.
func Broker(t testing.TB) string {
	t.Helper()
	const job = `{"id":"site-1.1","name":"n","site":"site-1","state":"succeeded","reason":"","durability":"federation",
"submitted_at":null,"started_at":null,"ended_at":null,"counts":{"succeeded":2,"failed":0},"spec":{"command":["true"],"resources":{"cpu":1,"memory":"0"}}}`
	const whole = `{"id":"site-1.20","name":"sweep","site":"site-1","state":"failed","reason":"exited with code 3","durability":"federation","submitted_at":null,"started_at":null,"ended_at":null,
"counts":{"succeeded":197,"failed":3},"spec":{"name":"sweep","command":["sh","-c","echo 'a b'\n$X"],"image":"alpine:3","env":{"B":"x y","A":"1"},"count":3,"indices":"3,17,40","timeout":"1m30s",
"resources":{"cpu":2,"memory":"256Mi","gpu":1},"retry":{"max_attempts":3,"on_loss":"never"},"priority":5,"labels":{"team":"a b"},"sites":{"only":["site-1","site-2"],"not":["site-3"]},"selectors":["gpu=a100"]},
"failed":[{"index":3,"state":"failed","exit_code":3,"site":"site-2","reason":"exited with code 3"},{"index":17,"state":"failed","signal":9},{"index":40,"state":"lost","reason":"lost by site-2"}]}`
	answers := map[string]string{
		"POST /v1/jobs": `{"id":"site-1.1","state":"queued","durability":"federation","reason":"no room"}`,
		"GET /v1/jobs":  `{"items":[` + job + `],"next":"more"}`, "GET /v1/jobs/site-1.1": job,
		"GET /v1/jobs/site-1.9":          strings.Replace(job, "succeeded", "failed", 1),
		"GET /v1/jobs/site-1.20":         whole,
		"GET /v1/jobs/site-1.10":         strings.Replace(job, "succeeded", "cancelled", 1),
		"GET /v1/jobs/site-1.11":         strings.Replace(job, "succeeded", "lost", 1),
		"GET /v1/jobs/site-1.1/tasks":    `{"items":[{"index":0,"state":"failed","reason":"a\u001b[31mb\nc","site":"site-2","attempt":1,"exit_code":3}],"next":""}`,
		"GET /v1/jobs/site-1.1/logs":     "hello\n",
		"DELETE /v1/jobs/site-1.1":       job,
		"POST /v1/jobs/site-1.1/hold":    job,
		"POST /v1/jobs/site-1.1/release": job,
		"POST /v1/jobs/site-1.20/rerun":  `{"id":"site-1.20","state":"queued","durability":"federation","reason":"no room"}`,
		"GET /v1/jobs/site-1.20/logs": `{"task":3,"text":"a\nb"}
{"task":17,"text":"c\n"}
{"task":17,"base64":"ZAo="}
{"task":40,"problem":{"type":"urn:cloudshare:problem:executor-unreachable","title":"Away","status":503}}
`,
		"POST /v1/cancel":      `{"items":[{"job":"site-1.1","state":"cancelled"},{"job":"site-1.2/3","problem":{"type":"urn:cloudshare:problem:already-ended","title":"The job has ended","status":409}}]}`,
		"GET /v1/wait":         `{"items":[{"job":"site-1.1","state":"succeeded","over":true},{"job":"site-1.9","state":"failed","reason":"exited with code 3","over":true}],"done":true}`,
		"GET /v1/sites":        `{"items":[{"id":"site-1","state":"alive","voter":true,"capacity":{"cpu":2},"exposed":{"cpu":1.5},"addresses":{"http":"127.0.0.1:1"},"machines":[{"name":"local","exposed":{"cpu":1.5},"free":{"cpu":1},"runs":["commands"],"labels":{"zone":"b","gpu":"a100"}}]}],"next":""}`,
		"GET /v1/queue":        `{"items":[{"site":"site-1","waiting":3,"cpu":12500000.5,"priority":"-8460000000"}],"next":""}`,
		"GET /v1/quota":        `{"items":[{"site":"site-1","quotas":[{"quota":"tasks","used":1,"limit":1000000,"full":"refuse","meaning":"tasks that have not ended"},{"quota":"kept_jobs","used":1000,"limit":1000,"full":"drop_oldest","meaning":"ended jobs that are kept"}]},{"site":"site-2","quotas":[{"quota":"tasks","used":0,"limit":1000000},{"quota":"kept_jobs","used":5,"limit":0}]}],"next":""}`,
		"GET /v1/ledger":       `{"index":7,"time":5,"unit":"weight·quantum","sites":[{"site":"site-1","contribution":"8460000000","utility":"48000000","priority":"8412000000"}],"matrix":[{"owner":"site-1","executor":"site-2","tasks":1,"a":"48000000","b":"8","r":"7"}]}`,
		"GET /v1/plausibility": `{"since":"2026-01-02T03:04:05Z","half_life_seconds":604800,"sites":[{"site":"site-1","notes":[],"runs":12.4,"beyond":0,"excess_seconds":0,"slowness":null,"lent_core_hours":96,"ran_core_hours":2.25},{"site":"site-2","notes":["it ran none of the 12 tasks that other sites gave it"],"declined":11.6,"slowness":{"factor":2.04}}]}`,
		"GET /v1/policy":       `{"policy":"SIMPL_DIRECT","running":"partial","rate_cpu":1,"quantum_ms":1}`,
		"GET /v1/report":       `{"site":"site-1","scope":"own","by":"site","first":"2026-01-02T03:04:05Z","last":null,"rows":[{"key":"=site-1","own_core_hours":1.5,"lent_core_hours":412.25,"used_core_hours":0.0012345,"attempts":3,"tasks":2,"succeeded":2,"usage":{"cpu_hours":1.2,"cpu_efficiency":0.8,"peak_memory_bytes":536870912,"memory_efficiency":0.25,"in_bytes":1536,"out_bytes":8589934592},"wait":{"count":2,"mean":1.25,"p50":1,"p95":2}}],"total":{"key":"total","wait":{"count":0}},"gaps":[{"from_entry":3,"to_entry":9,"reason":"the broker was away"}]}`,
		"GET /v1/archive":      "{\"job\":\"site-1.1\"}\n",
		"POST /v1/drain":       `{"draining":true,"own":true}`,
		"POST /v1/resume":      `{"draining":false,"own":false}`,
		"POST /v1/leave":       `{"leaving":true}`,
		"PUT /v1/policy":       `{"policy":"FAIRSHARE","running":"partial"}`,
		"GET /v1/members":      `{"items":[{"site":"site-1","key":"csk_aaaa","node":"01","elector":true,"deciding":true},{"site":"site-2","key":"csk_bbbb","node":"02","elector":true,"deciding":true,"recovery":"csk_rrrr"},{"site":"site-3","key":"csk_cccc","elector":true},{"site":"site-4","key":"csk_dddd","banned":true}],"next":""}`,
		"GET /v1/invitations": `{"items":[{"site":"lab-2","by":"site-1","vote":true,"state":"open","key":"csk_iiii","motion":7,"waiting":["site-2"],"needs":1},
{"site":"lab-3","by":"site-2","vote":false,"state":"claimed","key":"csk_jjjj","claimant":"csk_eeee","motion":8,"waiting":["site-1"],"needs":1},
{"site":"lab-4","by":"site-2","vote":false,"state":"open","key":"csk_kkkk","motion":9,"waiting":[],"needs":0},{"site":"lab-5","by":"site-2","state":"expired","key":"csk_llll","motion":5,"waiting":[]}],"next":""}`,
		"GET /v1/motions": `{"items":[{"number":7,"what":"admit","site":"lab-2","by":"site-1","state":"open","yes":1,"no":0,"electors":2,"needs":1,"missing":["site-2"]},
{"number":8,"what":"admit","site":"lab-3","key":"csk_eeee","by":"site-2","state":"open","yes":1,"no":0,"electors":2,"needs":1,"missing":["site-1"]},
{"number":9,"what":"rebind","site":"site-3","key":"csk_ffff","by":"site-2","state":"open","yes":0,"no":0,"electors":3,"needs":2,"missing":["site-1","site-2","site-5"]},
{"number":10,"what":"policy","by":"site-2","state":"passed","yes":2,"no":0,"electors":2,"needs":0,"missing":[]}],"next":""}`,
		"GET /v1/whoami":               `{"site":"site-1","user":"alice","role":"user","token":{"id":"7k2qm3xa","name":"laptop","user":"alice","role":"user","created":null,"expires":null}}`,
		"GET /v1/tokens":               `{"items":[{"id":"7k2qm3xa","name":"laptop","user":"alice","role":"user","created":"2026-01-02T03:04:05Z","expires":null,"used":"2026-01-02T04:00:00Z"},{"id":"bbbbbbbb","name":"prometheus","role":"read-only","created":"2026-01-02T03:04:05Z","expires":"2026-02-02T03:04:05Z"}],"next":""}`,
		"POST /v1/tokens":              `{"token":"cst_7k2qm3xa_secret","id":"7k2qm3xa","name":"alice","user":"alice","role":"user","created":"2026-01-02T03:04:05Z","expires":"2026-02-02T03:04:05Z"}`,
		"DELETE /v1/tokens/7k2qm3xa":   ``,
		"POST /v1/invitations":         `{"token":"csi_secret","addresses":["127.0.0.1:7701"],"site":"lab-2","by":"site-1","vote":true,"state":"open","key":"csk_iiii","motion":7,"waiting":["site-2"],"needs":1}`,
		"DELETE /v1/invitations/lab-2": `{"items":[{"site":"lab-2","by":"site-1","state":"revoked","key":"csk_iiii","motion":7,"waiting":[]}],"next":""}`,
		"POST /v1/motions":             `{"number":11,"what":"ban","site":"site-2","by":"site-1","state":"open","yes":1,"no":0,"electors":2,"needs":1,"missing":["site-2"]}`,
		"PUT /v1/motions/lab-3/vote":   `{"number":8,"what":"admit","site":"lab-3","key":"csk_eeee","by":"site-2","state":"passed","yes":2,"no":0,"electors":2,"needs":0,"missing":[]}`,
		"PUT /v1/motions/9/vote":       `{"number":9,"what":"rebind","site":"site-3","key":"csk_ffff","by":"site-2","state":"open","yes":1,"no":0,"electors":3,"needs":1,"missing":["site-2","site-5"]}`,
		"GET /v1/status":               `{"site":"site-1","leader":"site-2","leader_why":"a majority within 10 ms; no other voter is as near, so it leads on; site-1 would have 150 ms","term":3,"index":9,"state_hash":{"index":9,"hash":"ab"},"version":"v","federation":"f","voters":["site-1","site-2"],"members":["site-1"],"compared":{"index":8,"with":["site-2"],"differs":["site-3"]},"outputs":{"kept":137,"bytes":1572864,"max_bytes":10737418240,"keep_ms":86400000,"removed_by_age":12,"removed_by_bytes":3,"trouble":"no space left on device"},"handlers":[{"name":"local","status":"ok"}]}`,

		"PUT /v1/quotas/alcie": `{"user":"alcie","own":true,"limits":{"tasks":5},"note":"no token has the user alcie yet"}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Content-Type") == wire.TypeNDJSON {
			body, _ := io.ReadAll(r.Body)
			for i, line := range strings.Split(strings.TrimSpace(string(body)), "\n") {
				if strings.Contains(line, "bad") {
					_, _ = io.WriteString(w, `{"type":"urn:cloudshare:problem:invalid-job","title":"Not valid","status":422,"line":2}`+"\n")
					continue
				}
				fmt.Fprintf(w, `{"id":"site-1.%d","state":"queued"}`+"\n", i+1)
			}
			return
		}
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if ok {
			_, _ = io.WriteString(w, answer)
			return
		}
		status, name := http.StatusNotFound, "not-found"
		switch r.URL.Path {
		case "/v1/jobs/full.1":
			status, name = http.StatusTooManyRequests, "queue-full"
		case "/v1/jobs/away.1":
			status, name = http.StatusServiceUnavailable, "owner-unreachable"
		case "/v1/jobs/over.1":
			status, name = http.StatusConflict, "already-ended"
		case "/v1/jobs/broken.1":
			status, name = http.StatusInternalServerError, "internal"
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"urn:cloudshare:problem:%s","title":"No","status":%d,"detail":"%s"}`, name, status, r.URL.Path)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}
