package main

import (
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// oneByOne is the plain model: each operation of unknown outcome never returns, and none is counted with others.
var oneByOne = porcupine.Model{
	Init: func() interface{} { return absent },
	Step: func(before, input, _ interface{}) (bool, interface{}) {
		held, one := before.(int64), input.(operation)
		switch one.Op {
		case "put":
			return true, int64(*one.Value)
		case "delete":
			return one.Outcome != "ok" || *one.Found == (held != absent), absent
		default:
			return held == value(one), held
		}
	},
}

func oneByOneOf(all []operation) []porcupine.Operation {
	var each []porcupine.Operation
	for number, one := range all {
		next := porcupine.Operation{ClientId: number, Input: one, Output: one, Call: one.Call, Return: one.Return}
		switch {
		case one.Outcome == "fail", one.Outcome == "unknown" && one.Op == "get":
			continue
		case one.Outcome == "unknown":
			next.Return = math.MaxInt64
		}
		each = append(each, next)
	}
	return each
}

// randomHistory is what clients may have noted of one key: made of a register that works, and then of some lies.
func randomHistory(random *rand.Rand) []operation {
	var all []operation
	count := 2 + random.Intn(9)
	for number := 0; number < count; number++ {
		call := int64(random.Intn(24))
		one := operation{Client: number, Key: "a", Call: call, Return: call + int64(random.Intn(8)), Outcome: "ok"}
		if random.Intn(5) < 2 {
			one.Outcome = "unknown"
		}
		value, found := uint64(number), random.Intn(2) == 0
		switch one.Op = []string{"put", "put", "delete", "get"}[random.Intn(4)]; one.Op {
		case "put":
			one.Value = &value
		case "delete":
			one.Found = &found
		case "get":
			if value = uint64(random.Intn(count)); random.Intn(2) == 0 {
				one.Value = &value
			}
		}
		all = append(all, one)
	}
	return all
}

// Whatever the history, counting gives the verdict of the plain model.
func TestCountingChangesNoVerdict(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	good, bad := 0, 0
	for n := 0; n < 40_000; n++ {
		all := randomHistory(random)
		expected := porcupine.CheckOperations(oneByOne, oneByOneOf(all))
		if counted := porcupine.CheckOperations(register, byKey(all)["a"]); counted != expected {
			t.Fatalf("counted: %v, one by one: %v; %+v", counted, expected, describe(all))
		}
		if expected {
			good++
		} else {
			bad++
		}
	}
	if good < 4_000 || bad < 4_000 {
		t.Errorf("%d histories are good and %d are bad: too few of one", good, bad)
	}
}

func describe(all []operation) []string {
	var texts []string
	for _, one := range all {
		texts = append(texts, register.DescribeOperation(one, one))
	}
	return texts
}

// Forty operations that nobody has heard of, and what may have come of them: that has to be quick, whichever the verdict is.
func TestManyOfUnknownOutcomeAreQuick(t *testing.T) {
	yes, no := true, false
	for _, seen := range []struct {
		last     *bool
		expected porcupine.CheckResult
	}{{&yes, porcupine.Ok}, {&no, porcupine.Illegal}} {
		var all []operation
		add := func(op, outcome string, value *uint64, found *bool) {
			at := int64(10 * len(all))
			all = append(all, operation{Op: op, Key: "a", Value: value, Found: found, Outcome: outcome, Call: at, Return: at + 5})
		}
		for n := uint64(0); n < 40; n++ {
			add("put", "unknown", &n, nil)
		}
		last := uint64(99)
		for n := 0; n < 20; n++ {
			add("delete", "ok", nil, &yes)
		}
		add("put", "ok", &last, nil)
		add("delete", "ok", nil, seen.last)
		verdict := porcupine.CheckOperationsTimeout(register, byKey(all)["a"], 10*time.Second)
		if verdict != seen.expected {
			t.Errorf("%v, expected %v", verdict, seen.expected)
		}
	}
}
