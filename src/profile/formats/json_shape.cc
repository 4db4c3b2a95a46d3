#include "profile/formats/json_shape.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "profile/formats/json_slabs.h"

namespace flamewire::profile {
namespace {

constexpr std::size_t max_depth = 1000, piece_bytes = std::size_t{256} << 10;
// Nesting depth of text slabs. Writers put threads and tables of the document into slabs of their own, which nest two
// or three deep.
constexpr int max_nested_slabs = 8;
// A slab can be referenced many times. The total size of all references is limited to this multiple of the file's size.
constexpr std::uint64_t most_repetition = 4;

// A RapidJSON stream over the bytes of a source, and a handler for its values. The names are RapidJSON's.
// NOLINTBEGIN(readability-identifier-naming)
class Stream {
public:
    using Ch = char;
    Stream(ImportJob& job, std::uint64_t begin, std::uint64_t end)
        : job_(job), piece_(piece_bytes, '\0'), offset_(begin), end_(end) {
        refill();
    }
    [[nodiscard]] Ch Peek() const { return at_ < size_ ? piece_[at_] : '\0'; }
    Ch Take() {
        const Ch c = Peek();
        if (at_ < size_) {
            ++at_;
            if (at_ == size_) refill();
        }
        return c;
    }
    [[nodiscard]] std::size_t Tell() const { return static_cast<std::size_t>(offset_ - size_ + at_); }
    [[nodiscard]] bool ended() const { return at_ == size_; }
    [[nodiscard]] const Result<bool>& state() const { return state_; }
    // Members of output streams; never called.
    Ch* PutBegin() { return nullptr; }
    void Put(Ch /*c*/) {}
    void Flush() {}
    std::size_t PutEnd(Ch* /*begin*/) { return 0; }

private:
    void refill() {
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), end_ - offset_));
        const auto got = job_.source().read_at(offset_, std::span(piece_).first(wanted));
        at_ = 0;
        size_ = got ? *got : 0;
        if (!got) state_ = std::unexpected(got.error());
        offset_ += size_;
        job_.progress(offset_);
    }
    ImportJob& job_;
    std::string piece_;
    std::uint64_t offset_, end_;
    std::size_t at_ = 0, size_ = 0;
    Result<bool> state_ = true;
};

// `slabs`: the slabs of the file; nullptr if it has none.
class Handler {
public:
    Handler(ImportJob& job, const JsonShape& shape, JsonSink& sink, const JsonSlabs* slabs)
        : job_(job), shape_(shape), sink_(sink), slabs_(slabs) {}

    Result<JsonEnd> parse(std::uint64_t begin, std::uint64_t end);

    bool Null() { return value({}); }
    bool Bool(bool is) { return value({JsonValue::Kind::boolean, is ? 1.0 : 0.0, {}}); }
    bool Int(int number) { return Double(number); }
    bool Uint(unsigned number) { return Double(number); }
    bool Int64(std::int64_t number) { return Double(static_cast<double>(number)); }
    bool Uint64(std::uint64_t number) { return Double(static_cast<double>(number)); }
    bool Double(double number) { return value({JsonValue::Kind::number, number, {}}); }
    bool RawNumber(const char* text, rapidjson::SizeType size, bool /*copy*/) { return String(text, size, true); }
    bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
        return value({JsonValue::Kind::text, 0, {text, size}});
    }
    bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
        if (undecided_ && !slab_named_ && std::string_view(text, size) == "$s") return slab_named_ = true;
        if (!decide_object()) return false;
        next_ = shape_.member(open_.back().node, {text, size});
        if (shape_.is_any(next_)) sink_.key(shape_.number(next_), {text, size});
        return true;
    }
    bool StartObject() {
        if (!decide_object()) return false;
        if (slabs_ == nullptr) return start(false);
        undecided_ = true;
        slab_named_ = false;
        slab_.reset();
        return true;
    }
    bool StartArray() { return decide_object() && start(true); }
    bool EndObject(rapidjson::SizeType /*members*/) {
        if (undecided_ && slab_) {
            undecided_ = false;
            return replace(*slab_);
        }
        return decide_object() && finish();
    }
    bool EndArray(rapidjson::SizeType /*elements*/) { return finish(); }
    [[nodiscard]] bool too_deep() const { return open_.size() > max_depth; }

private:
    struct Open {
        int node = -1;
        bool array = false;
    };
    [[nodiscard]] int place() const {
        if (open_.empty()) return 0;
        return open_.back().array ? shape_.element(open_.back().node) : next_;
    }
    // An object of a JSLB file is a placeholder for a slab if "$s" is its only member. So an object is not reported
    // before its next token.
    bool decide_object() {
        if (!std::exchange(undecided_, false)) return true;
        const bool begun = start(false);
        next_ = -1;  // skip "$s", if present
        return begun;
    }
    bool value(const JsonValue& value) {
        if (undecided_ && value.kind == JsonValue::Kind::number) {
            constexpr std::uint64_t no_slab = ~std::uint32_t{0};
            slab_ = value.whole(no_slab, no_slab);
            return true;
        }
        if (!decide_object()) return false;
        const int number = shape_.number(place());
        return number == 0 || sink_.value(number, value);
    }
    bool start(bool array) {
        const int node = place();
        open_.push_back({node, array});
        if (too_deep()) return false;
        const int number = shape_.number(node);
        return number == 0 || sink_.begin(number);
    }
    bool finish() {
        const int number = shape_.number(open_.back().node);
        open_.pop_back();
        return number == 0 || sink_.end(number);
    }
    bool stop(std::string message) {
        end_ = fail(ErrorCode::invalid, std::move(message));
        return false;
    }
    bool replace(std::uint64_t index) {
        const JsonSlab* slab = slabs_->find(index);
        if (slab == nullptr) return stop(fmt::format("the JSLB file has no slab {}", index));
        replaced_bytes_ += slab->size;
        if (replaced_bytes_ / most_repetition > job_.source().size())
            return stop("the JSLB file repeats its slabs, which no profile does");
        if (slab->type == JsonSlab::Type::json) return replace_text(*slab);
        const int node = place();
        if (!start(true)) return false;
        if (node >= 0) {
            const auto done = read_numbers(job_.source(), *slab, [&](double number) { return Double(number); });
            if (!done) end_ = std::unexpected(done.error());
            if (!done || !*done) return false;
        }
        return finish();
    }
    bool replace_text(const JsonSlab& slab) {
        if (nested_ == max_nested_slabs)
            return stop(fmt::format("the JSLB file has more than {} texts in one another", max_nested_slabs));
        ++nested_;
        end_ = parse(slab.offset, slab.offset + slab.size);
        --nested_;
        return end_ && *end_ == JsonEnd::whole;
    }

    ImportJob& job_;
    const JsonShape& shape_;
    JsonSink& sink_;
    const JsonSlabs* slabs_;
    std::vector<Open> open_;
    int next_ = -1, nested_ = 0;
    bool undecided_ = false, slab_named_ = false;
    std::optional<std::uint64_t> slab_;
    std::uint64_t replaced_bytes_ = 0;
    Result<JsonEnd> end_ = JsonEnd::whole;  // of a nested slab: its result, which also ends the outer text
};
// NOLINTEND(readability-identifier-naming)

Result<JsonEnd> Handler::parse(std::uint64_t begin, std::uint64_t end) {
    Stream stream(job_, begin, end);
    // A byte order mark is not JSON, but many tools write one.
    if (stream.Peek() == '\xef')
        for (int i = 0; i < 3; ++i) stream.Take();
    rapidjson::Reader reader;
    constexpr unsigned flags =
        rapidjson::kParseIterativeFlag | rapidjson::kParseTrailingCommasFlag | rapidjson::kParseNanAndInfFlag;
    const rapidjson::ParseResult done = reader.Parse<flags>(stream, *this);
    TRY(Result<bool>(stream.state()));
    if (!done.IsError()) return JsonEnd::whole;
    if (!end_ || *end_ != JsonEnd::whole) return end_;
    if (too_deep())
        return fail(ErrorCode::invalid,
                    fmt::format("the JSON is nested more than {} levels deep, which no profile is", max_depth));
    if (done.Code() == rapidjson::kParseErrorTermination) return JsonEnd::stopped;
    if (stream.ended()) return JsonEnd::cut;
    return fail(ErrorCode::invalid, fmt::format("this is not JSON, from byte {} on: {}", done.Offset(),
                                                rapidjson::GetParseError_En(done.Code())));
}

}  // namespace

JsonShape::JsonShape(std::span<const Place> places) : nodes_(1) {
    for (const Place& place : places) {
        if (place.same_as.empty()) {
            nodes_[static_cast<std::size_t>(node_of(place.path))].number = place.number;
            continue;
        }
        const int array = node_of(place.path.substr(0, place.path.size() - 2));
        nodes_[static_cast<std::size_t>(array)].element = node_of(place.same_as);
    }
}

int JsonShape::node_of(std::string_view path) {
    int node = 0;
    while (!path.empty()) {
        const std::size_t size = path.starts_with("[]") ? 2 : std::min(path.find_first_of(".["), path.size());
        node = child(node, path.substr(0, size));
        path.remove_prefix(size);
        if (path.starts_with('.')) path.remove_prefix(1);
    }
    return node;
}

int JsonShape::child(int node, std::string_view step) {
    const int known = step == "[]" ? element(node) : member(node, step);
    if (known >= 0) return known;
    const int fresh = static_cast<int>(nodes_.size());
    nodes_.push_back({std::string(step), 0, -1, {}});
    Node& parent = nodes_[static_cast<std::size_t>(node)];
    if (step == "[]")
        parent.element = fresh;
    else
        parent.members.push_back(fresh);
    return fresh;
}

int JsonShape::member(int node, std::string_view name) const {
    if (node < 0) return -1;
    int any = -1;
    for (const int member : nodes_[static_cast<std::size_t>(node)].members) {
        const std::string& its = nodes_[static_cast<std::size_t>(member)].name;
        if (its == name) return member;
        if (its == "*") any = member;
    }
    return any;
}

std::uint64_t JsonValue::whole(std::uint64_t most, std::uint64_t otherwise) const {
    if (kind != Kind::number || !(number >= 0) || number > static_cast<double>(most)) return otherwise;
    return static_cast<std::uint64_t>(number);
}

Result<JsonEnd> read_json(ImportJob& job, const JsonShape& shape, JsonSink& sink) {
    std::string beginning(16, '\0');
    beginning.resize(TRY(job.source().read_at(0, beginning)));
    if (!JsonSlabs::recognises(beginning)) return Handler(job, shape, sink, nullptr).parse(0, job.source().size());
    const JsonSlabs slabs = TRY(JsonSlabs::open(job.source()));
    if (!slabs.whole()) return JsonEnd::cut;
    const JsonSlab* root = slabs.root();
    if (root == nullptr || root->type != JsonSlab::Type::json)
        return fail(ErrorCode::invalid, "the JSLB file has no text to begin with");
    return Handler(job, shape, sink, &slabs).parse(root->offset, root->offset + root->size);
}

bool begins_as_json(std::string_view beginning, char open, std::initializer_list<std::string_view> words) {
    if (beginning.starts_with("\xef\xbb\xbf")) beginning.remove_prefix(3);
    const std::size_t first = beginning.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || beginning[first] != open) return false;
    return std::ranges::all_of(words,
                               [&](std::string_view word) { return beginning.find(word) != std::string_view::npos; });
}

}  // namespace flamewire::profile
