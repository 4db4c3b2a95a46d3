// Reading large JSON without a tree of it in memory: an importer says which places it wants ("shared.frames[].name"), and
// is told what stands there, in the order of the file. Anything else is skipped. RapidJSON's SAX reader below it, iterative,
// so no depth of a file is a depth of our stack. JSLB files are read as the JSON that they stand for.
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

// Places by number. Members of objects are names after a point, "*" is any other member, "[]" is any element of an array; a
// place that only leads to others needs no number of its own.
class JsonShape {
public:
    struct Place {
        std::string_view path;
        int number = 0;  // above 0
        // An earlier path that this one repeats, for trees: {"tree.children[]", 0, "tree"}.
        std::string_view same_as{};
    };
    JsonShape(std::initializer_list<Place> places) : JsonShape(std::span(places.begin(), places.size())) {}
    explicit JsonShape(std::span<const Place> places);

    // 0 is the document; -1: nothing below is wanted.
    [[nodiscard]] int member(int node, std::string_view name) const;
    [[nodiscard]] int element(int node) const { return node < 0 ? -1 : nodes_[static_cast<std::size_t>(node)].element; }
    [[nodiscard]] int number(int node) const { return node < 0 ? 0 : nodes_[static_cast<std::size_t>(node)].number; }
    // Whether it is a "*".
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
    double number = 0;      // also of a boolean
    std::string_view text;  // valid during the call
    // A whole number from 0 to `most`, or `otherwise`.
    [[nodiscard]] std::uint64_t whole(std::uint64_t most, std::uint64_t otherwise) const;
};

// What an importer does with the places that it wants. false ends the reading.
class JsonSink {
public:
    virtual ~JsonSink() = default;
    virtual bool value(int place, const JsonValue& value) = 0;
    virtual void key(int /*place*/, std::string_view /*name*/) {}  // of a "*", before its value or begin()
    virtual bool begin(int /*place*/) { return true; }             // of an object or an array
    virtual bool end(int /*place*/) { return true; }
};

enum class JsonEnd : std::uint8_t { whole, cut, stopped };  // cut: the file ended in the midst of a value
// invalid: not JSON; the sentence says at which byte.
Result<JsonEnd> read_json(ImportJob& job, const JsonShape& shape, JsonSink& sink);

// Whether the beginning of a file is an object or array (as `open` says) with all of these words in it.
bool begins_as_json(std::string_view beginning, char open, std::initializer_list<std::string_view> words);

}  // namespace flamewire::profile
