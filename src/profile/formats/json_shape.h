// Reads large JSON without building a tree in memory. An importer lists the places that it needs
// ("shared.frames[].name") and receives their values in file order. Everything else is skipped. RapidJSON's SAX reader
// runs iteratively, so deep nesting cannot overflow the stack. JSLB files are read as the JSON that they represent.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

// Places by number. Members of objects are names after a dot, "*" is any other member, "[]" is any element of an array.
// A place that only leads to other places needs no number.
class JsonShape {
public:
    struct Place {
        std::string_view path;
        int number = 0;  // greater than 0
        // An earlier path that this place repeats, for trees: {"tree.children[]", 0, "tree"}.
        std::string_view same_as{};
    };
    JsonShape(std::initializer_list<Place> places) : JsonShape(std::span(places.begin(), places.size())) {}
    explicit JsonShape(std::span<const Place> places);

    // Node 0 is the document. -1: no place below is wanted.
    [[nodiscard]] int member(int node, std::string_view name) const;
    [[nodiscard]] int element(int node) const { return node < 0 ? -1 : nodes_[static_cast<std::size_t>(node)].element; }
    [[nodiscard]] int number(int node) const { return node < 0 ? 0 : nodes_[static_cast<std::size_t>(node)].number; }
    // Returns whether the node is a "*".
    [[nodiscard]] bool is_any(int node) const {
        return node >= 0 && nodes_[static_cast<std::size_t>(node)].name == "*";
    }

private:
    struct Node {
        std::string name;
        int number = 0, element = -1;
        std::vector<int> members;
    };
    int child(int node, std::string_view step);
    int node_of(std::string_view path);
    std::vector<Node> nodes_;
};

struct JsonValue {
    enum class Kind : std::uint8_t { null, boolean, number, text } kind = Kind::null;
    double number = 0;      // also for a boolean
    std::string_view text;  // valid during the call
    // The value if it is a whole number from 0 to `most`, else `otherwise`.
    [[nodiscard]] std::uint64_t whole(std::uint64_t most, std::uint64_t otherwise) const;
};

// Receives the values of the wanted places. Returning false stops the reading.
class JsonSink {
public:
    virtual ~JsonSink() = default;
    virtual bool value(int place, const JsonValue& value) = 0;
    virtual void key(int /*place*/, std::string_view /*name*/) {}  // for a "*", before its value or begin()
    virtual bool begin(int /*place*/) { return true; }             // for an object or an array
    virtual bool end(int /*place*/) { return true; }
};

enum class JsonEnd : std::uint8_t { whole, cut, stopped };  // cut: the file ended inside a value
// invalid: not JSON; the message gives the byte offset.
Result<JsonEnd> read_json(ImportJob& job, const JsonShape& shape, JsonSink& sink);

// Returns whether the beginning of a file is an object or array (as `open` says) that contains all of these words.
bool begins_as_json(std::string_view beginning, char open, std::initializer_list<std::string_view> words);

}  // namespace flamewire::profile
