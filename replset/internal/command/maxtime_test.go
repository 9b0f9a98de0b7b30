package command

import (
	"fmt"
	"strings"
	"testing"
)

// backtracking is a pattern that needs the engine that backtracks, and never comes to an end on forty letters a.
const backtracking = `^(a*)*\\1b$`

// patterns are commands with it, on texts on which one match takes for ever, and on many on each of which it takes a while.
var patterns = map[string]string{
	"a filter":                       `{"find":"long","filter":{"s":{"$regex":"` + backtracking + `"}}}`,
	"a filter in an array":           `{"find":"long","filter":{"l":{"$elemMatch":{"$not":{"$regex":"` + backtracking + `"}}}}}`,
	"a list of values":               `{"find":"long","filter":{"s":{"$in":[{"$regularExpression":{"pattern":"` + backtracking + `","options":""}}]}}}`,
	"a schema":                       `{"find":"long","filter":{"$jsonSchema":{"properties":{"s":{"pattern":"` + backtracking + `"}}}}}`,
	"a schema's names":               `{"find":"names","filter":{"$jsonSchema":{"patternProperties":{"` + backtracking + `":{}}}}}`,
	"a schema's other names":         `{"find":"names","filter":{"$jsonSchema":{"patternProperties":{"` + backtracking + `":{}},"additionalProperties":false}}}`,
	"a count":                        `{"count":"long","query":{"s":{"$regex":"` + backtracking + `"}}}`,
	"a delete":                       `{"delete":"long","deletes":[{"q":{"s":{"$regex":"` + backtracking + `"}},"limit":0}]}`,
	"an update that pulls":           `{"update":"long","updates":[{"q":{},"u":{"$pull":{"l":{"$regex":"` + backtracking + `"}}}}]}`,
	"$regexMatch":                    `{"aggregate":"long","pipeline":[{"$project":{"r":{"$regexMatch":{"input":"$s","regex":"` + backtracking + `"}}}}],"cursor":{}}`,
	"$regexFind":                     `{"aggregate":"long","pipeline":[{"$project":{"r":{"$regexFind":{"input":"$s","regex":"` + backtracking + `"}}}}],"cursor":{}}`,
	"$regexFindAll":                  `{"aggregate":"long","pipeline":[{"$project":{"r":{"$regexFindAll":{"input":"$s","regex":"` + backtracking + `"}}}}],"cursor":{}}`,
	"many matches of a while":        `{"find":"short","filter":{"s":{"$regex":"` + backtracking + `"}}}`,
	"a schema, many times a while":   `{"find":"short","filter":{"$jsonSchema":{"properties":{"s":{"pattern":"` + backtracking + `"}}}}}`,
	"an expression, many times long": `{"aggregate":"short","pipeline":[{"$match":{"$expr":{"$regexMatch":{"input":"$s","regex":"` + backtracking + `"}}}}],"cursor":{}}`,
}

func TestMaxTimeEndsARegularExpression(t *testing.T) {
	m := newPrimary(t)
	long := strings.Repeat("a", 40) + "!"
	command(t, m, "t", `{"insert":"long","documents":[{"s":"`+long+`","l":["`+long+`"]}]}`)
	command(t, m, "t", `{"insert":"names","documents":[{"`+long+`":1}]}`)
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`{"_id":%d,"s":"%s!"}`, i, strings.Repeat("a", 18)))
	}
	command(t, m, "t", `{"insert":"short","documents":[`+strings.Join(many, ",")+`]}`)
	endedByMaxTime(t, m, patterns)
}
