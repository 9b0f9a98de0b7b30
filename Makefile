# The habits of this house; CI calls the same targets.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: check format vet static test conformance vectors interop official demo fuzz bench kills cpus stories soak

check: format vet static test

format: # every Go file as gofmt would have it
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not gofmt-clean: $$bad"; exit 1; }

vet:
	go vet ./...
	GOARCH=386 go vet ./...
	GOARCH=s390x go vet ./bson/

static:
	go run $(STATICCHECK) ./...

test: # arch_test.go (floors, purity, caps) runs with the rest
	go test -race ./...
	go test -tags purego ./bson/
	GOGC=1 go test -gcflags=all=-d=checkptr ./bson/

cpus: # bson's tests on a big-endian and on a 32-bit machine, emulated: needs qemu-user. The emulator cannot start a child
	@set -e; for cpu in s390x arm; do for tags in "" purego; do \
	  echo "GOARCH=$$cpu -tags '$$tags'"; GOARCH=$$cpu go test -count=1 -tags "$$tags" -exec qemu-$$cpu -skip ChildProcess ./bson/; done; done

conformance: # the official specification tests; writes build/score.json
	cd conformance && SEXTANT_NEED_CORPUS=1 SEXTANT_SCORE=build/score.json go test -count=1 -run 'TestSpec|TestHarness'

vectors: # answers recorded from a real server, counted by operator
	SEXTANT_NEED_CORPUS=1 go test -count=1 ./replset/internal/command/ -run TestVectors -v

interop: # strangers against the embedded set, and the driver against a stranger: a module of its own; installs those that are not there
	interop/install.sh
	cd interop && go test -race -count=1 -timeout 20m -parallel 4 ./...
	cd interop && go test -count=1 -run OnRealInput . # 100,000 orders: 5,000 of them above, where every access is checked

official: # the official Go driver's own runner of the unified tests against the embedded set; its count may only rise
	cd interop && go run ./official

bench: # package bson beside the official one; fails under a promised floor
	cd bench && go run . -check

demo: # the main job, on the embedded set
	go run ./cmd/sextant demo

kills: # a process that serves a set is killed KILLS (100) times under load, and loses nothing it has confirmed
	SEXTANT_KILLS=$${KILLS:-100} go test -count=1 -run TestKilledProcess -v ./replset

stories: # STORIES (10,000) stories of faults on fake time, from number STORY (1) on; some on disks that forget; and as many as it takes to catch every mutant
	cd replset && SEXTANT_STORIES=$${STORIES:-10000} SEXTANT_STORY=$${STORY:-1} go test -count=1 -timeout 0 -run TestStoriesOfFaults
	cd replset && SEXTANT_FOLDERS=$${FOLDERS:-500} SEXTANT_STORY=$${STORY:-1} go test -count=1 -timeout 0 -run TestStoriesInFolders
	cd replset && SEXTANT_FORGETFUL=$${FOLDERS:-500} SEXTANT_MUTANTS=1 go test -count=1 -timeout 0 -run 'TestStoriesOnDisks|TestStoriesCatch' -v

soak: # 200 goroutines of mixed operations through random faults for SOAK (10m: seconds or a Go duration), from SOAK_SEED (1); afterwards goroutines, sockets and heap are back to base
	SOAK=$${SOAK:-10m} go test -race -count=1 -timeout 0 -run 'TestSoak$$' -v ./replset

fuzz: # every fuzz target for FUZZTIME (one minute) each
	@set -e; for dir in . interop; do (cd $$dir; for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz || true); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-1m} $$p; done; done); done
