package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// absent is the state of a register that holds nothing. Values that are put are not negative.
const absent int64 = -1

// register is one event under its id: put replaces it or creates it, delete removes it, get shows it.
var register = porcupine.Model{
	Init: func() interface{} { return absent },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		held, one := state.(int64), input.(operation)
		switch one.Op {
		case "put":
			return true, int64(*one.Value)
		case "delete":
			// Whether there was something to delete is an observation too.
			if one.Outcome == "ok" && *one.Found != (held != absent) {
				return false, held
			}
			return true, absent
		default:
			return held == value(one), held
		}
	},
	DescribeOperation: func(input, _ interface{}) string {
		one := input.(operation)
		switch {
		case one.Op == "put":
			return fmt.Sprintf("put %d%s", *one.Value, doubt(one))
		case one.Op == "delete" && one.Outcome == "ok" && !*one.Found:
			return "delete: nothing there"
		case one.Op == "delete":
			return "delete" + doubt(one)
		default:
			return "get: " + show(value(one))
		}
	},
	DescribeState: func(state interface{}) string { return show(state.(int64)) },
}

// value is what a get has shown.
func value(one operation) int64 {
	if one.Value == nil {
		return absent
	}
	return int64(*one.Value)
}

func show(held int64) string {
	if held == absent {
		return "nothing"
	}
	return fmt.Sprint(held)
}

func doubt(one operation) string {
	if one.Outcome == "unknown" {
		return " (unknown)"
	}
	return ""
}
