package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/anishathalye/porcupine"
)

// operation is a line of a history.
type operation struct {
	Client int    `json:"client"`
	Op     string `json:"op"`
	Key    string `json:"key"`
	// What was put, or what was found; null: nothing.
	Value *uint64 `json:"value"`
	// Nanoseconds since a moment that all clients share.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`
	// ok, fail (it has no effect) or unknown (it may take effect at any time after its call, or never).
	Outcome string `json:"outcome"`
	// Of a deletion that is ok: whether there was something to delete.
	Found *bool `json:"found"`
	// Of unknown outcome, and counted with those that are like it.
	isCredit bool
}

// readHistory reads a line for each operation, and checks what the model relies on.
func readHistory(from io.Reader) ([]operation, error) {
	var all []operation
	put := map[string]map[uint64]bool{}
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if err := one.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if one.Op == "put" {
			if put[one.Key] == nil {
				put[one.Key] = map[uint64]bool{}
			}
			if put[one.Key][*one.Value] {
				return nil, fmt.Errorf("line %d: %d was put before: expected a value of its own for each put", number, *one.Value)
			}
			put[one.Key][*one.Value] = true
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

func (o operation) check() error {
	switch {
	case o.Op != "put" && o.Op != "get" && o.Op != "delete":
		return fmt.Errorf("op %q: expected put, get or delete", o.Op)
	case o.Outcome != "ok" && o.Outcome != "fail" && o.Outcome != "unknown":
		return fmt.Errorf("outcome %q: expected ok, fail or unknown", o.Outcome)
	case o.Key == "":
		return fmt.Errorf("key: expected one")
	case o.Op == "put" && o.Value == nil:
		return fmt.Errorf("value: expected the one that was put")
	case o.Op == "delete" && o.Outcome == "ok" && o.Found == nil:
		return fmt.Errorf("found: expected whether there was something to delete")
	case o.Client < 0:
		return fmt.Errorf("client %d: expected 0 or more", o.Client)
	case o.Return < o.Call:
		return fmt.Errorf("return %d: expected at least the time of the call, %d", o.Return, o.Call)
	}
	return nil
}

// byKey is what has to be checked of each key, as operations that the checker takes.
//
// An operation of unknown outcome may take effect at any time after its call. Each that stays one doubles what the checker tries, so those
// that are like one another are counted instead:
//   - A put whose value nobody has found shows in one way alone: a deletion that comes next finds something. Which of these puts that was makes
//     no difference. Anywhere else it can be left out, as the next write hides it.
//   - A deletion shows in one way alone: what comes next finds nothing.
//
// So each is a credit from the moment of its call on, and what could not have been seen without one takes it (model.go). A credit stays good. So
// nothing is lost by giving it at once: the order has to have what ended before that call in front of it, and that is all that the call asks.
func byKey(all []operation) map[string][]porcupine.Operation {
	found := map[string]map[uint64]bool{}
	clients := 0
	for _, one := range all {
		if one.Op == "get" && one.Outcome == "ok" && one.Value != nil {
			if found[one.Key] == nil {
				found[one.Key] = map[uint64]bool{}
			}
			found[one.Key][*one.Value] = true
		}
		clients = max(clients, one.Client+1)
	}
	keys := map[string][]porcupine.Operation{}
	for _, one := range all {
		next := porcupine.Operation{ClientId: one.Client, Input: one, Output: one, Call: one.Call, Return: one.Return}
		switch {
		case one.Outcome == "fail", one.Outcome == "unknown" && one.Op == "get":
			continue
		case one.Outcome == "unknown":
			// Its client goes on as another.
			next.ClientId = clients
			clients++
			if one.Op == "put" && found[one.Key][*one.Value] {
				// It never returns.
				next.Return = math.MaxInt64
				break
			}
			one.isCredit = true
			next.Input, next.Output, next.Return = one, one, one.Call
		}
		keys[one.Key] = append(keys[one.Key], next)
	}
	return keys
}

// sortedKeys are the keys in the order of their names.
func sortedKeys(of map[string][]porcupine.Operation) []string {
	var keys []string
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
