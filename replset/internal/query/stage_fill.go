package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
	"github.com/sextantdb/sextant/replset/internal/query/expr"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// parseFill makes $fill of the stages that it is short for: $setWindowFields for the methods, $addFields for values.
func parseFill(pp *pipelineParser, name string, arg bson.RawValue) ([]stage, error) {
	if arg.Type != bson.TypeEmbeddedDocument {
		return nil, fail(mongoerr.CodeFailedToParse, "The %s stage specification must be an object, found %s", name, value.TypeName(arg.Type))
	}
	args, err := idl(name, value.Doc(arg), map[string]string{"partitionBy": "object, string", "partitionByFields": "array", "sortBy": "object", "output": "object"}, "output")
	if err != nil {
		return nil, err
	}
	by := args["partitionBy"]
	if fields := args["partitionByFields"]; fields.Type != 0 {
		if by.Type != 0 {
			return nil, fail(6050204, "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'")
		}
		if by, err = partitionFields(fields); err != nil {
			return nil, err
		}
	}
	if value.Doc(args["output"]).IsEmpty() {
		return nil, fail(6050203, "The output field in '$fill' must contain an object with at least one element")
	}
	var windows, values []value.Field
	for path, v := range value.Doc(args["output"]).All() {
		window, expression, err := fillOutput(path, v)
		if err != nil {
			return nil, err
		}
		if window.Type != 0 {
			windows = append(windows, value.Field{Key: path, Value: window})
		} else if expression.Type != 0 {
			values = append(values, value.Field{Key: path, Value: docValueOf("$ifNull", bson.ArrayValue(bson.NewRawArray(bson.StringValue("$"+path), expression)))})
		}
	}
	return pp.parseAll(fillStages(by, args["sortBy"], windows, values)...)
}

func fillStages(by, sortBy bson.RawValue, windows, values []value.Field) (stages []bson.RawValue) {
	if len(windows) > 0 {
		var spec []value.Field
		if by.Type != 0 {
			spec = append(spec, value.Field{Key: "partitionBy", Value: by})
		}
		if sortBy.Type != 0 {
			spec = append(spec, value.Field{Key: "sortBy", Value: sortBy})
		}
		spec = append(spec, value.Field{Key: "output", Value: bson.DocumentValue(value.DocOf(windows...))})
		stages = append(stages, docValueOf("$setWindowFields", bson.DocumentValue(value.DocOf(spec...))))
	}
	if len(values) > 0 {
		stages = append(stages, docValueOf("$addFields", bson.DocumentValue(value.DocOf(values...))))
	}
	return stages
}

// partitionFields is the expression that partitionByFields is short for.
func partitionFields(v bson.RawValue) (bson.RawValue, error) {
	var fields []value.Field
	for _, f := range value.Array(v) {
		path, ok := value.Text(f)
		if !ok {
			return v, fail(mongoerr.CodeTypeMismatch, "BSON field '$fill.partitionByFields' must hold strings, found %s", value.TypeName(f.Type))
		}
		if err := expr.CheckPath(path); err != nil {
			return v, err
		}
		fields = append(fields, value.Field{Key: strings.ReplaceAll(path, ".", "_"), Value: bson.StringValue("$" + path)})
	}
	return bson.DocumentValue(value.DocOf(fields...)), nil
}

// fillOutput reads {value: expression} or {method: "linear" or "locf"}; neither of them asks for nothing.
func fillOutput(path string, v bson.RawValue) (window, expression bson.RawValue, err error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return window, expression, fail(6050200, "Each fill output specification must be an object with exactly one field")
	}
	args, err := idl("$fill", bson.Raw(v.Value), map[string]string{"method": "string", "value": ""})
	if err != nil || args["method"].Type == 0 {
		return window, args["value"], err
	}
	if args["value"].Type != 0 {
		return window, expression, fail(6050201, "Each fill output specification must have exactly one of 'method' or 'value' fields, not both")
	}
	of := bson.StringValue("$" + path)
	switch method, _ := value.Text(args["method"]); method {
	case "linear":
		return docValueOf("$linearFill", of), expression, nil
	case "locf":
		return docValueOf("$locf", of), expression, nil
	}
	return window, expression, fail(6050202, "Method must be either locf or linear")
}
