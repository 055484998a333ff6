# CloudShare. `make` or `make help` lists the targets.

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO      ?= go
TOOLS   := $(CURDIR)/bin/tools
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# Without tables for debuggers, a test of each package is linked in two thirds of the time.
TEST     = $(GO) test -json -ldflags=-s
# The race detector is part of the tests; `make test RACE=` runs without it.
RACE    ?= -race
# What it does not report: a library's own races, each explained there.
# And how long a process waits at its end for reports of others of its threads: by default a
# second, which each supervisor of a task takes, too.
export GORACE ?= suppressions=$(CURDIR)/.ci/races atexit_sleep_ms=50
# Without a folder's name in them, objects are compiled once for all clones of a commit:
# a kept cache spares each later one some two minutes of a core.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -trimpath)
# Whole-system tests drive real processes: they run after the others, so that
# the two do not disturb each other's timing, and always: Go's test cache does
# not know the binary that they start.
# What mostly waits, and longest, begins first.
UNIT     = ./node/coord/raftlog $(shell $(GO) list ./... | grep -v /test/)
SYSTEM  := ./test/...
FUZZTIME ?= 10s
# Many tests wait, for elections, disks and processes: more than one a core at a time.
CORES   := $(or $(shell getconf _NPROCESSORS_ONLN 2>/dev/null),2)
BESIDE  := $(shell echo $$(($(CORES) + 1)))
# Whole federations wait most of all: five tests of them at a time take a core.
BESIDE_SYSTEM := $(shell echo $$(($(CORES) * 2 + 1)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: need-go ## build bin/cloudshare
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/cloudshare ./cmd/cloudshare

# Built without an engine, and without fetching anything. CA= names other
# certificates to trust than this machine's.
IMAGE     := bin/cloudshare-image.tar
IMAGE_TAG := cloudshare:$(VERSION)
CA        ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: image
image: build bin/tools/ociimage ## build a container image FROM scratch into bin
	@bin/tools/ociimage -program bin/cloudshare -ca "$(CA)" -tag "$(IMAGE_TAG)" -out $(IMAGE)
	@echo "$(IMAGE) holds $(IMAGE_TAG)"

.PHONY: run
run: build ## start three sites on this machine with a sample workload to watch
	@bin/cloudshare dev --sites 3 --sample

# The race detector makes all several times slower. Under it models play fewer cases, and
# what shares nothing between goroutines is left out (a State is one goroutine's but for
# its snapshots): COMPUTED plays all of that without it. Of the suites of local tasks it
# watches one: the others start the same supervisors in other ways, each a process that
# takes a tenth of a second of a core to begin with the detector. All of it: test-raced-long.
SUITES        := TestConformanceInSandboxes|TestConformanceWithoutCgroups|TestHostile
SEEDED        := TestEstimatesHold|TestCalibration|TestFlippedBytes
MODELS        := TestAnyOrderKeepsThePromises|TestKeyedRequestsAgainstModel|TestModel|TestJournalAgainstModel|TestStoppedAnywhere
MODELLED      := ./node/core ./node/journal ./executor/outputs
COMPUTING     := ./fsm ./cmd/cloudshare/internal/simcmd
SHARED_STATE  := ^(TestSnapshotBesideApply|TestViewsAreCopies|TestStateMachine|TestStateMachineAtItsBounds|TestStateMachineRestoredAtEachEntry)$$
RACED_UNIT     = -- $(TEST) $(RACE) -p $(BESIDE) -parallel $(BESIDE) -timeout 10m -skip '^($(SUITES)|$(SEEDED))$$' \
	$(filter-out %/fsm %/internal/simcmd,$(UNIT)) -- $(TEST) $(RACE) -timeout 5m -run '$(SHARED_STATE)' ./fsm
RACED_SYSTEM   = --system $(TEST) $(RACE) -count=1 -parallel $(BESIDE_SYSTEM) -timeout 12m $(SYSTEM)
COMPUTED       = -- $(TEST) -timeout 20m $(COMPUTING) ./node/sim ./node/sim/study \
	-- $(TEST) -timeout 20m -run '^($(MODELS)|$(SEEDED))$$' $(MODELLED) ./node/estimate ./node/boltfile \
	-- $(TEST) -timeout 20m -run 'TestAllMoveTogether|TestAddressesGoRound' ./node/coord/raftlog
PLAIN_SUITES   = --system $(TEST) -count=1 -timeout 8m -run '^($(SUITES))$$' ./executor/local

.PHONY: test
test: need-go need-cc need-ip bin/tools/testsum ## run all tests, with the race detector where goroutines share something
	@bin/tools/testsum $(RACED_UNIT) $(PLAIN_SUITES) $(COMPUTED) $(RACED_SYSTEM)

# The parts of it, for .ci/run: how fast the second is does not matter. test-hostile runs the suites.
.PHONY: test-raced
test-raced: need-go need-cc need-ip bin/tools/testsum ## run the tests of make test that the race detector watches
	@bin/tools/testsum $(RACED_UNIT) $(RACED_SYSTEM)

.PHONY: test-computed
test-computed: need-go bin/tools/testsum ## run the rest of make test: long computations, whole
	@bin/tools/testsum $(COMPUTED)

.PHONY: test-raced-long
test-raced-long: need-go need-cc bin/tools/testsum ## have the race detector watch what make test plays without it, and all cases (some ten minutes)
	@bin/tools/testsum -- $(TEST) $(RACE) -timeout 20m -run '^($(SUITES))$$' ./executor/local \
		-- $(TEST) $(RACE) -timeout 30m $(filter-out ./fsm,$(COMPUTING)) ./node/estimate ./node/boltfile \
		-- $(TEST) $(RACE) -timeout 30m ./fsm $(MODELLED) -rapid.checks=100

.PHONY: test-short
test-short: need-go need-ip bin/tools/testsum ## run the packages' own tests, without the race detector
	@bin/tools/testsum -- $(TEST) -timeout 3m $(UNIT)

# Containers are tested on real engines, started and ended by the tests themselves
# in folders of their own. Kills of a broker are among them: 20, or in the long form 100.
.PHONY: test-container
test-container: need-root need-engines image bin/tools/testsum ## run tasks in containers of a real dockerd and Podman (root)
	@CLOUDSHARE_IMAGE="$(CURDIR)/$(IMAGE)" CLOUDSHARE_IMAGE_TAG="$(IMAGE_TAG)" bin/tools/testsum \
		--system $(TEST) -tags container -count=1 -parallel $(BESIDE) -timeout 30m -skip '^TestHostile$$' ./executor/container/... \
		--system $(TEST) -tags container -count=1 -timeout 20m ./test/container/...

.PHONY: test-container-long
test-container-long: need-root need-engines image bin/tools/testsum ## kill a broker of containers a hundred times (root; two minutes)
	@CLOUDSHARE_KILLS=100 CLOUDSHARE_IMAGE="$(CURDIR)/$(IMAGE)" CLOUDSHARE_IMAGE_TAG="$(IMAGE_TAG)" bin/tools/testsum \
		--system $(TEST) -tags container -count=1 -timeout 30m -run '^TestNothingIsLeft$$' ./executor/container

# Debian's own Snakemake, in the image that .ci/tes makes once, as the client and in the tasks.
.PHONY: test-tes
test-tes: need-root need-engines need-snakemake bin/tools/testsum ## have Debian's Snakemake run workflows over three sites, one of which is killed (root)
	@bash .ci/tes image
	@CLOUDSHARE_TES_IMAGE="$$(bash .ci/tes path)" bin/tools/testsum --system $(TEST) -tags tes -count=1 -timeout 10m ./test/tes

# Local tasks as root's nobody and, by a user that may do nothing, as that one's own; then
# containers of both engines. Nothing is built by the other user: it has no cache.
HOSTILE      := TestHostile|TestSecretsInShownFolders|TestOutbound|TestStackEnds
HOSTILE_USER := setpriv --reuid 65432 --regid 65432 --clear-groups env HOME=/nonexistent
.PHONY: test-hostile
test-hostile: need-go need-ip bin/tools/testsum ## run the suites and hostile tasks in sandboxes and, as root, as another user and in containers
	@bin/tools/testsum --system $(TEST) -count=1 -timeout 8m -run '$(HOSTILE)|$(SUITES)' ./executor/local
	@[ "$$(id -u)" != 0 ] || { dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && chmod 755 "$$dir" && mkdir -m 1777 "$$dir/tmp" && \
		CGO_ENABLED=0 $(GO) build -buildvcs=false -o "$$dir/attack" ./executor/executortest/attack && \
		CGO_ENABLED=0 $(GO) test -c -o "$$dir/local.test" ./executor/local && cd "$$dir/tmp" && \
		TMPDIR="$$dir/tmp" CLOUDSHARE_ATTACK="$$dir/attack" $(HOSTILE_USER) ../local.test -test.timeout 4m -test.run '$(HOSTILE)'; }
	@[ "$$(id -u)" != 0 ] || ! command -v dockerd >/dev/null || ! command -v podman >/dev/null || \
		bin/tools/testsum --system $(TEST) -tags container -count=1 -parallel $(BESIDE) -timeout 10m -run TestHostile ./executor/container

# One federation is attacked by all tests, and must be as before after each.
.PHONY: test-attacks
test-attacks: need-go need-openssl bin/tools/testsum ## attack a real federation as outsiders and as hostile members
	@bin/tools/testsum --system $(TEST) -tags attacks -count=1 -timeout 8m ./test/attacks

# Operators of sites that share a switch, and nothing else, type what the guides say.
.PHONY: test-operators
test-operators: need-root need-go need-ip build bin/tools/testsum ## have operators found, join, expel and come back at machines of their own (root)
	@bin/tools/testsum --system $(TEST) -tags operators -count=1 -timeout 5m ./test/operators

# The pages are looked at in Debian's chromium (CHROMIUM= names another one).
.PHONY: test-web
test-web: need-chromium build bin/tools/testsum ## look at the web pages in a headless Chromium
	@CHROMIUM=$(CHROMIUM) bin/tools/testsum --system $(GO) -C test/web test -json -count=1 -timeout 15m ./...

# A real ensemble of three on loopback, from the files of Debian's package; then
# whole federations on one server.
ZK_E2E := TestJobLifecycle|TestStoppedLead|TestKilledBroker|TestRollingRestart|TestKeyRotation|TestAllBrokersDie|TestBagOverflows|TestArchiveSurvives|TestEarlierAttempts|TestEventsGoOn|TestCutLines|TestForkedReplicaStops
ZK_ADDRESSES := TestWrongAdvertise|TestFounderWaits|TestNameThatIsNotFound|TestTwoFramesOfAStranger|TestVotersSwap|TestAllAddressesChange|TestGarbage|TestOnZooKeeper
.PHONY: test-zk
test-zk: need-go need-cc need-zookeeper bin/tools/testsum ## run the ZooKeeper backend on a real ensemble of three servers
	@bin/tools/testsum \
		--system $(TEST) $(RACE) -tags zookeeper -count=1 -timeout 20m ./node/coord/zk/... \
		--system $(TEST) -count=1 -parallel $(BESIDE_SYSTEM) -timeout 8m -run '$(ZK_E2E)' ./test/e2e -coordination zookeeper \
		--system $(TEST) -tags zookeeper -count=1 -parallel $(BESIDE_SYSTEM) -timeout 10m -run '$(ZK_ADDRESSES)' ./test/e2e -coordination zookeeper \
		--system $(TEST) -tags zookeeper -count=1 -timeout 5m -run TestMoveToZooKeeperAndBack ./test/e2e

# A real Kubernetes on loopback, with nodes of kwok and real kubelets: built once by
# .ci/kube, started and ended by the tests themselves. What takes longest begins first.
KUBE     := ./executor/kube/... ./test/kube ./test/deploy/...
KUBE_BIN  = $(or $(CLOUDSHARE_KUBE_BIN),$(shell bash .ci/kube path))
.PHONY: test-kube
test-kube: need-root need-kube image bin/tools/testsum ## run tasks, the chart and the manifests on a real Kubernetes (root)
	@bash .ci/kube end # of an earlier run
	@CLOUDSHARE_KUBE_BIN="$(KUBE_BIN)" CLOUDSHARE_IMAGE="$(CURDIR)/$(IMAGE)" CLOUDSHARE_IMAGE_TAG="$(IMAGE_TAG)" \
		bin/tools/testsum --system $(TEST) -tags kube -count=1 -timeout 30m $(KUBE)

.PHONY: test-kube-long
test-kube-long: need-root need-kube image bin/tools/testsum ## kill a broker of pods a hundred times, and test the tests' Kubernetes itself (root; some minutes)
	@bash .ci/kube end # of an earlier run
	@CLOUDSHARE_KILLS=100 CLOUDSHARE_KUBE_BIN="$(KUBE_BIN)" CLOUDSHARE_IMAGE="$(CURDIR)/$(IMAGE)" CLOUDSHARE_IMAGE_TAG="$(IMAGE_TAG)" \
		bin/tools/testsum --system $(TEST) -tags kube -count=1 -timeout 30m -run '^TestNothingIsLeft$$' ./executor/kube \
		--system $(TEST) -tags kube -count=1 -timeout 30m ./test/kube/cluster/...

# A machine of QEMU in software, with Debian's kernel for clouds (.ci/guest gets both). The short form has one test a
# limit, of both users at the same time; the long one all that depends on cgroups, a whole suite, and containers.
GUEST       := -- $(TEST) -tags guest -count=1 -timeout 3h ./test/guest
GUEST_ENV    = CLOUDSHARE_GUEST_KERNEL="$(shell bash .ci/guest path)"
LIMITS      := ^(TestMemoryIsHeld|TestProcessorTimeIsHeld|TestProcessesAreHeld|TestBandwidthIsHeld)$$
LIMITS_LONG := IsHeld$$|AreHeld$$|^(TestShareOfMemory|TestGroupsGo|TestCoresHold|TestNothingLeaks|TestOneOwnerASandbox|$\
	TestFrozenTasksEnd|TestLooksAreEvaded|TestConformanceInSandboxes)$$
LIMITS_CONTAINERS := ^(TestOutOfMemory|TestShareOfMemory|TestBandwidthIsHeld)$$
.PHONY: test-cgroup
test-cgroup: need-go need-guest bin/tools/testsum ## hold tasks to their limits on a real cgroup v2, in a guest of QEMU
	@$(GUEST_ENV) CLOUDSHARE_GUEST_TOGETHER=1 CLOUDSHARE_GUEST_TESTS='$(LIMITS)' bin/tools/testsum $(GUEST) -run '^TestCgroupLimits$$'

.PHONY: test-cgroup-long
test-cgroup-long: need-go need-guest need-engines bin/tools/testsum ## the same with the conformance suite, cores and containers there (some minutes)
	@$(GUEST_ENV) CLOUDSHARE_GUEST_TESTS='$(LIMITS_LONG)' CLOUDSHARE_GUEST_CONTAINERS='$(LIMITS_CONTAINERS)' bin/tools/testsum $(GUEST)

.PHONY: test-slowfs
test-slowfs: need-root need-fuse ## check the slow disk of the figures and of chaos on a real mount (root)
	@$(GO) -C test/slowfs test -tags fuse -count=1 ./...

.PHONY: web-assets
web-assets: need-npm ## fetch the embedded files of other packages again and compare
	@api/web/assets/fetch.sh

.PHONY: bench-container
bench-container: need-root need-engines ## measure container tasks beside a bare loop on the engine (root)
	@$(GO) test -tags container -run '^$$' -bench Tasks -benchtime 60x ./executor/container

# KUBE_TASKS= another number of tasks that run at a time than 10,000.
.PHONY: bench-kube
bench-kube: need-root need-kube ## measure tasks a second and memory on a real Kubernetes with fake nodes, beside bare Jobs (root; ten minutes)
	@CLOUDSHARE_KUBE_BIN="$(KUBE_BIN)" $(GO) test -tags kube -run '^$$' -bench Tasks -benchtime 400x -timeout 30m ./executor/kube
	@CLOUDSHARE_KUBE_BIN="$(KUBE_BIN)" $(GO) test -tags kube -run '^$$' -bench Running -benchtime 1x -timeout 30m ./executor/kube

.PHONY: test-metrics
test-metrics: need-go ## have promtool check what /metrics shows, and the alerts
	@command -v promtool >/dev/null || { echo "promtool is missing: install it (apt-get install prometheus)"; exit 1; }
	@$(GO) test -tags promtool -run '^TestPromtool$$' -count=1 ./cmd/cloudshare/internal/daemon ./test/deploy
# The provider is a library of the tests' own module.
.PHONY: test-oidc
test-oidc: build bin/tools/testsum ## log in at a real OpenID provider, and attack a broker with forged tokens
	@bin/tools/testsum --system $(GO) -C test/oidc test -json -count=1 -timeout 10m ./...

.PHONY: man
man: build ## write the manual pages into bin/man
	@bin/cloudshare docs man bin/man

.PHONY: lint
lint: need-go need-git tools ## check style, import arrows and house rules
	@bin/tools/golangci-lint run --build-tags attacks,container,guest,kube,operators,promtool,tes,zookeeper ./...
	@bin/tools/housecheck .
	@bin/tools/apidoc -check $(API_DOC) $(OPENAPI)
	@cd test/web && $(TOOLS)/golangci-lint run ./...
	@cd test/oidc && $(TOOLS)/golangci-lint run ./...
	@cd test/slowfs && $(TOOLS)/golangci-lint run --build-tags fuse ./...
	@$(GO) -C .ci/tools vet ./...
	@bin/tools/testsum -- $(GO) -C .ci/tools test -json ./... -- $(GO) -C test/slowfs test -json ./...

.PHONY: fmt
fmt: need-go tools ## format all Go files and sort their imports
	@bin/tools/golangci-lint fmt ./...
	@cd test/web && $(TOOLS)/golangci-lint fmt ./...
	@cd test/oidc && $(TOOLS)/golangci-lint fmt ./...
	@cd test/slowfs && $(TOOLS)/golangci-lint fmt ./...
	@bin/tools/gofumpt -w .ci/tools

# The reference of the API is made from its description, the paper's figures from
# what the state machine played.
OPENAPI := api/testdata/openapi.json
API_DOC := cmd/cloudshare/guide/api.md

.PHONY: docs
docs: need-go tools ## rewrite the generated parts of the guides
	@bin/tools/apidoc -write $(API_DOC) $(OPENAPI)
	@$(GO) test -count=1 -run TestConceptsDrawThePaper ./cmd/cloudshare -rewrite

.PHONY: bench
bench: build ## measure the figures, each beside its own limit (16 minutes at most; containers and Kubernetes as root, where they are)
	@CLOUDSHARE_KUBE_BIN="$(KUBE_BIN)" $(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -out bench.txt

# Any folder of logs; of the paper's logs those that are there, else all.
SIM     ?=
SIM_OUT ?= sim-real
PAPER    = $(strip $(foreach l,HPC2N-2002-2.2-cln LPC-EGEE-2004-1.2-cln METACENTRUM-2009-2,$(wildcard $(SWF_DIR)/$(l).swf $(SWF_DIR)/$(l).swf.gz)))
LOGS     = $(or $(PAPER),$(wildcard $(SWF_DIR)/*.swf $(SWF_DIR)/*.swf.gz))

.PHONY: sim-real
sim-real: build ## evaluate fairness on the real logs in SWF_DIR=… (SIM=--quick: a minute), report in SIM_OUT
	@[ -n "$(SWF_DIR)" ] && [ -n "$(LOGS)" ] || \
		{ echo "No log in SWF_DIR='$(SWF_DIR)': get some from https://www.cs.huji.ac.il/labs/parallel/workload/ and name their folder"; exit 1; }
	@SWF_DIR="$(abspath $(SWF_DIR))" $(GO) test -count=1 -timeout 30m -run TestArchiveLogs ./node/sim/swf
	@bin/cloudshare sim table1 $(SIM) --out "$(SIM_OUT)" $(LOGS)

# Of a log that is there twice, raw and cleaned, one is played. CEA Curie takes more than
# a minute an instance: name it in ALL to have it, too. RANGES= other flags, RANGES_OUT= another folder.
RANGES     ?= --periods 8 --tasks 34000 --loads 1.5
RANGES_OUT ?= sim-ranges
LEFT_OUT   := HPC2N-2002-2.1-cln KTH-SP2-1996-2 CEA-Curie-2011-2.1-cln
ALL         = $(filter-out $(foreach l,$(LEFT_OUT),$(SWF_DIR)/$(l).swf $(SWF_DIR)/$(l).swf.gz),$(wildcard $(SWF_DIR)/*.swf $(SWF_DIR)/*.swf.gz))

.PHONY: sim-ranges
sim-ranges: build ## tell over all logs in SWF_DIR=… and five seeds how much fairer ALONE, CE and SHAPLEY are (some eight minutes of a core)
	@[ -n "$(SWF_DIR)" ] && [ -n "$(ALL)" ] || \
		{ echo "No log in SWF_DIR='$(SWF_DIR)': get some from https://www.cs.huji.ac.il/labs/parallel/workload/ and name their folder"; exit 1; }
	@bin/cloudshare sim ranges $(RANGES) --out "$(RANGES_OUT)" $(ALL)

# Weeks of the same logs as sim-real, under seeds by which nothing was tuned.
ESTIMATES ?= --seed 13 --seeds 2

.PHONY: sim-estimates
sim-estimates: build ## judge the estimates of starts on the real logs in SWF_DIR=… (a few minutes of a core)
	@[ -n "$(SWF_DIR)" ] && [ -n "$(LOGS)" ] || \
		{ echo "No log in SWF_DIR='$(SWF_DIR)': get some from https://www.cs.huji.ac.il/labs/parallel/workload/ and name their folder"; exit 1; }
	@bin/cloudshare sim estimates $(ESTIMATES) $(LOGS)

# Chaos needs root for its network namespaces. SEED= draws one and prints it.
CHAOS := $(GO) run -buildvcs=false ./test/chaos
SEED  ?= 0

.PHONY: bench-losses
bench-losses: build bin/slowfs ## measure what killed and paused brokers and a slow disk cost (about nine minutes; the disk as root)
	@$(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -out bench-losses.txt -only losses

# Hosts and links of a network in this process: root. WAN= other sections, such as WAN=far-leader.
WAN       ?= wan
WAN_SHORT := far-submissions,far-starts,far-arrays,far-leader,far-noise,far-nonvoter

.PHONY: bench-wan
bench-wan: need-root build ## measure sites far apart beside round trips of the same links (root; some ten minutes, 28 at most)
	@$(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -out bench-wan.txt -only $(WAN)

.PHONY: bench-wan-short
bench-wan-short: need-root build ## show within half a minute that bench-wan works: three sites, 0 and 20 ms (root)
	@$(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -quick -only $(WAN_SHORT)

.PHONY: bench-scale
bench-scale: need-root build ## grow a federation to 200 sites on this machine and measure what each costs (root, 16 GiB free; eight minutes)
	@$(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -out bench-scale.txt -only scale

.PHONY: bench-zk
bench-zk: need-zookeeper build ## measure ZooKeeper beside Raft and beside bare creates (about two minutes)
	@$(GO) run -buildvcs=false ./test/bench -binary bin/cloudshare -out bench-zk.txt -only backends

.PHONY: chaos
chaos: need-root build ## break a federation for twelve minutes and check it (root; SEED=n repeats a run)
	@$(CHAOS) -binary bin/cloudshare -suite long -seed $(SEED)

.PHONY: chaos-short
chaos-short: need-root build ## the same for four minutes, always alike (root)
	@$(CHAOS) -binary bin/cloudshare -suite short -seed 1

.PHONY: chaos-zk
chaos-zk: need-root need-zookeeper build ## the same with the federation's log on a ZooKeeper server (root)
	@$(CHAOS) -binary bin/cloudshare -suite short -seed 1 -coordination zookeeper

.PHONY: chaos-mutations
chaos-mutations: need-root need-go ## switch off one safeguard after the other: chaos must notice (root)
	@$(CHAOS) -mutations

# Go would try for up to a minute to shorten each input that reaches new code; where goroutines make what is reached
# vary from run to run, it did nothing else.
.PHONY: fuzz-short
fuzz-short: need-go ## run every fuzz target for FUZZTIME (10s)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg || exit 1; \
		done; \
	done

.PHONY: fuzz-long
fuzz-long: need-go ## play random commands against the state machine for FUZZMINUTES (60), at its bounds, too
	@end=$$(($$(date +%s) + 60 * $(or $(FUZZMINUTES),60))); while [ $$(date +%s) -lt $$end ]; do \
		$(GO) test -count=1 -timeout 30m -run '^TestStateMachine' ./fsm -rapid.checks=2000 || exit 1; \
	done

.PHONY: tidy-check
tidy-check: need-go ## check that go.mod and go.sum are tidy and the modules unchanged
	@$(GO) mod tidy -diff
	@$(GO) -C .ci/tools mod tidy -diff
	@$(GO) -C test/web mod tidy -diff
	@$(GO) -C test/oidc mod tidy -diff
	@$(GO) -C test/slowfs mod tidy -diff
	@$(GO) mod verify

.PHONY: vuln
vuln: need-go tools ## look for known vulnerabilities (asks vuln.go.dev)
	@bin/tools/govulncheck ./...

.PHONY: tools
tools: bin/tools/.built ## build the pinned development tools into bin/tools
	@:

bin/tools/.built: .ci/tools/go.mod .ci/tools/go.sum $(wildcard .ci/tools/*/*.go)
	@mkdir -p bin/tools
	@$(GO) -C .ci/tools build -buildvcs=false -o $(TOOLS)/ tool ./...
	@touch $@

# Only the standard library: `make test` downloads no tool.
bin/tools/testsum: $(wildcard .ci/tools/testsum/*.go)
	@mkdir -p bin/tools
	@$(GO) -C .ci/tools build -buildvcs=false -o $(TOOLS)/ ./testsum

bin/tools/ociimage: $(wildcard .ci/tools/ociimage/*.go)
	@mkdir -p bin/tools
	@$(GO) -C .ci/tools build -buildvcs=false -o $(TOOLS)/ ./ociimage

# A file system whose syncs can be made slow, for figures and faults.
bin/slowfs: $(wildcard test/slowfs/*.go) test/slowfs/go.mod
	@$(GO) -C test/slowfs build -buildvcs=false -o $(CURDIR)/bin/slowfs .

.PHONY: clean
clean: ## remove what was built or measured
	@rm -rf bin bench.txt bench-losses.txt bench-wan.txt bench-scale.txt coverage.out

# Prerequisites, each with its remedy.

.PHONY: need-go
need-go:
	@command -v $(GO) >/dev/null || { echo "Go is missing: install Go 1.26 or newer from https://go.dev/dl/"; exit 1; }
	@v=$$($(GO) env GOVERSION | sed 's/^go//; s/[^0-9.].*//'); \
	major=$${v%%.*}; rest=$${v#*.}; minor=$${rest%%.*}; \
	[ "$${major:-0}" -gt 1 ] || [ "$${minor:-0}" -ge 26 ] || \
		{ echo "Go $$v is too old: install Go 1.26 or newer from https://go.dev/dl/"; exit 1; }

.PHONY: need-root
need-root:
	@[ "$$(id -u)" = 0 ] || { echo "Root is needed to make network namespaces: run sudo make, or leave this target out"; exit 1; }

.PHONY: need-ip
need-ip:
	@command -v ip >/dev/null || { echo "ip is missing: apt-get install iproute2"; exit 1; }

.PHONY: need-engines
need-engines:
	@for p in dockerd podman runc busybox docker-compose; do command -v $$p >/dev/null || \
		{ echo "$$p is missing: apt-get install docker.io podman runc busybox-static docker-compose (none of their services is needed)"; exit 1; }; done
	@[ -x /lib/systemd/systemd ] || { echo "systemd is missing: apt-get install systemd (the tests boot one of their own)"; exit 1; }

.PHONY: need-snakemake
need-snakemake:
	@command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || [ -e "$$(bash .ci/tes path)" ] || \
		{ echo "debootstrap is missing: apt-get install debootstrap (the image of Snakemake is made by it, once)"; exit 1; }

.PHONY: need-kube
need-kube:
	@for p in containerd runc busybox ip; do command -v $$p >/dev/null || [ -x /usr/sbin/$$p ] || \
		{ echo "$$p is missing: run bash .ci/kube install (Debian's packages; no service is started)"; exit 1; }; done
	@[ -x "$(KUBE_BIN)/helm" ] || { echo "Kubernetes is not built: run bash .ci/kube build (once, about 15 minutes)"; exit 1; }

.PHONY: need-guest
need-guest:
	@command -v qemu-system-x86_64 >/dev/null && command -v busybox >/dev/null && [ -e "$(shell bash .ci/guest path)" ] || \
		{ echo "QEMU, busybox or the guest's kernel is missing: run bash .ci/guest install (Debian's packages; no service is started)"; exit 1; }

.PHONY: need-fuse
need-fuse:
	@[ -c /dev/fuse ] || { echo "/dev/fuse is missing: load the kernel's module (modprobe fuse), or give it to this container (--device /dev/fuse --cap-add SYS_ADMIN)"; exit 1; }

.PHONY: need-git
need-git:
	@command -v git >/dev/null || { echo "git is missing: install it, e.g. apt-get install git"; exit 1; }

.PHONY: need-openssl
need-openssl:
	@command -v openssl >/dev/null || { echo "openssl is missing: install it, e.g. apt-get install openssl"; exit 1; }

.PHONY: need-chromium
need-chromium:
	@[ -n "$(CHROMIUM)" ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ echo "Chromium is missing: install it (apt-get install chromium), or name one: make test-web CHROMIUM=/path"; exit 1; }

.PHONY: need-zookeeper
need-zookeeper:
	@command -v java >/dev/null && [ -e /usr/share/java/zookeeper.jar ] || \
		{ echo "ZooKeeper is missing: install it (apt-get install --no-install-recommends zookeeper); no service is needed"; exit 1; }

.PHONY: need-npm
need-npm:
	@command -v npm >/dev/null && command -v openssl >/dev/null || \
		{ echo "npm or openssl is missing: install them, e.g. apt-get install npm openssl"; exit 1; }

.PHONY: need-cc
need-cc:
	@[ -z "$(RACE)" ] || command -v $$($(GO) env CC) >/dev/null || \
		{ echo "The race detector needs a C compiler: install gcc (apt-get install gcc), or run: make test RACE="; exit 1; }
