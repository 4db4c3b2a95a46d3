#include "profile/formats/firefox_profile.h"

#include <array>
#include <utility>

namespace flamewire::profile::firefox_format {
namespace {

enum Place : int {
    version = 1,
    symbolicated,
    product,
    start_time,
    profiling_start_time,
    library,
    library_path,
    library_name,
    library_debug_name,
    library_code_id,
    library_debug_id,
    thread,
    thread_name,
    thread_pid,
    thread_tid,
    sample_stack,
    sample_time,
    sample_delta,
    sample_weight,
    weight_type,
    own_event,
    own_unit,
    own_comm,
    own_samples,
    own_weights,
    own_returns,
    text,
    first_column,
};

struct TableColumn {
    std::string_view path;
    Column Tables::* column;
};
constexpr std::array columns{
    TableColumn{"stackTable.prefix[]", &Tables::stack_prefix},
    TableColumn{"stackTable.prefixOffset[]", &Tables::stack_prefix_offset},
    TableColumn{"stackTable.frame[]", &Tables::stack_frame},
    TableColumn{"frameTable.func[]", &Tables::frame_func},
    TableColumn{"frameTable.line[]", &Tables::frame_line},
    TableColumn{"frameTable.inlineDepth[]", &Tables::frame_inline_depth},
    TableColumn{"frameTable.flags[]", &Tables::frame_flags},
    TableColumn{"frameTable.address[]", &Tables::frame_address},
    TableColumn{"frameTable.lib[]", &Tables::frame_library},
    TableColumn{"frameTable.nativeSymbol[]", &Tables::frame_native_symbol},
    TableColumn{"funcTable.name[]", &Tables::func_name},
    TableColumn{"funcTable.fileName[]", &Tables::func_file},
    TableColumn{"funcTable.source[]", &Tables::func_source},
    TableColumn{"funcTable.flags[]", &Tables::func_flags},
    TableColumn{"funcTable.resource[]", &Tables::func_resource},
    TableColumn{"resourceTable.lib[]", &Tables::resource_library},
    TableColumn{"resourceTable.name[]", &Tables::resource_name},
    TableColumn{"resourceTable.type[]", &Tables::resource_type},
    TableColumn{"nativeSymbols.libIndex[]", &Tables::native_symbol_library},
    TableColumn{"sources.filename[]", &Tables::source_file},
};

JsonShape make_shape() {
    std::vector<std::pair<std::string, int>> places{
        {"meta.preprocessedProfileVersion", version},
        {"meta.symbolicated", symbolicated},
        {"meta.product", product},
        {"meta.startTime", start_time},
        {"meta.profilingStartTime", profiling_start_time},
        {"threads[]", thread},
        {"threads[].name", thread_name},
        {"threads[].pid", thread_pid},
        {"threads[].tid", thread_tid},
        {"threads[].samples.stack[]", sample_stack},
        {"threads[].samples.time[]", sample_time},
        {"threads[].samples.timeDeltas[]", sample_delta},
        {"threads[].samples.weight[]", sample_weight},
        {"threads[].samples.duration[]", sample_weight},  // before version 29
        {"threads[].samples.weightType", weight_type},
        {"threads[].flamewire.event", own_event},
        {"threads[].flamewire.unit", own_unit},
        {"threads[].flamewire.comm", own_comm},
        {"threads[].flamewire.samples[]", own_samples},
        {"threads[].flamewire.weights[]", own_weights},
        {"threads[].flamewire.returns[]", own_returns},
    };
    // Before version 41, libraries belong to a thread.
    for (const std::string in : {"libs[]", "threads[].libs[]"}) {
        places.emplace_back(in, library);
        places.emplace_back(in + ".path", library_path);
        places.emplace_back(in + ".name", library_name);
        places.emplace_back(in + ".debugName", library_debug_name);
        places.emplace_back(in + ".codeId", library_code_id);
        places.emplace_back(in + ".breakpadId", library_debug_id);
    }
    // Strings belong to a thread before version 56, all other tables except sources before version 60. Sources are
    // always shared.
    for (const std::string in : {"threads[]", "shared"}) {
        places.emplace_back(in + ".stringArray[]", text);
        for (int i = 0; const TableColumn& one : columns)
            places.emplace_back(in + "." + std::string(one.path), first_column + i++);
    }
    std::vector<JsonShape::Place> views;
    views.reserve(places.size());
    for (const auto& [path, number] : places) views.push_back({path, number});
    return JsonShape(views);
}

class Collector final : public JsonSink {
public:
    bool begin(int place) override {
        if (place == Place::thread) {
            profile.threads.emplace_back();
            in_thread_ = true;
        }
        if (place == Place::library) libraries().emplace_back();
        return true;
    }
    bool end(int place) override {
        if (place == Place::thread) in_thread_ = false;
        return true;
    }
    bool value(int place, const JsonValue& value) override {
        if (place == Place::thread || place == Place::library) return false;  // not an object
        if (place >= Place::text) {
            Tables& to = in_thread_ ? profile.threads.back().tables : profile.shared;
            if (place == Place::text)
                to.texts.emplace_back(value.text);
            else
                (to.*columns.at(static_cast<std::size_t>(place - first_column)).column).push_back(index_of(value));
        } else if (place >= Place::library_path && place <= Place::library_debug_id) {
            of_library(libraries().back(), place, value);
        } else if (in_thread_) {
            of_thread(profile.threads.back(), place, value);
        } else {
            of_meta(place, value);
        }
        return true;
    }

    Profile profile;

private:
    static std::uint32_t index_of(const JsonValue& value) {
        return static_cast<std::uint32_t>(value.whole(none, none));
    }
    // Process and thread ids are numbers or text.
    static std::uint32_t id_of(const JsonValue& value) {
        if (value.kind != JsonValue::Kind::text) return static_cast<std::uint32_t>(value.whole(none - 1, 0));
        std::uint64_t sum = 0;
        for (const char c : value.text) {
            if (c < '0' || c > '9') break;
            sum = sum * 10 + static_cast<std::uint64_t>(c - '0');
            if (sum >= none) return 0;
        }
        return static_cast<std::uint32_t>(sum);
    }
    std::vector<Library>& libraries() { return in_thread_ ? profile.threads.back().libraries : profile.libraries; }

    void of_meta(int place, const JsonValue& value) {
        switch (place) {
            case Place::version:
                profile.version = static_cast<std::uint32_t>(value.whole(none, 0));
                break;
            case Place::symbolicated:
                profile.symbolicated = value.kind != JsonValue::Kind::boolean || value.number != 0;
                break;
            case Place::product:
                profile.product = value.text;
                break;
            case Place::start_time:
                profile.start_ms = value.number;
                break;
            case Place::profiling_start_time:
                profile.profiling_start_ms = value.number;
                break;
            default:
                break;
        }
    }
    static void of_library(Library& to, int place, const JsonValue& value) {
        switch (place) {
            case Place::library_path:
                to.path = value.text;
                break;
            case Place::library_name:
                to.name = value.text;
                break;
            case Place::library_debug_name:
                to.debug_name = value.text;
                break;
            case Place::library_code_id:
                to.code_id = value.text;
                break;
            default:
                to.debug_id = value.text;
                break;
        }
    }
    static void of_thread(ThreadColumns& to, int place, const JsonValue& value) {
        switch (place) {
            case Place::thread_name:
                to.name = value.text;
                break;
            case Place::thread_pid:
                to.pid = id_of(value);
                break;
            case Place::thread_tid:
                to.tid = id_of(value);
                break;
            case Place::sample_stack:
                to.stacks.push_back(index_of(value));
                break;
            case Place::sample_time:
                to.times_ms.push_back(value.number);
                break;
            case Place::sample_delta:
                to.deltas_ms.push_back(value.number);
                break;
            case Place::sample_weight:
                to.weights.push_back(value.number);
                break;
            case Place::weight_type:
                to.weight_type = value.text;
                break;
            case Place::own_event:
                to.own_event = value.text;
                break;
            case Place::own_unit:
                to.own_unit = value.text;
                break;
            case Place::own_comm:
                to.own_comm = value.text;
                break;
            case Place::own_samples:
                to.own_samples.push_back(value.number);
                break;
            case Place::own_weights:
                to.own_weights.push_back(value.number);
                break;
            case Place::own_returns:
                to.own_returns.push_back(index_of(value));
                break;
            default:
                break;
        }
    }

    bool in_thread_ = false;
};

}  // namespace

std::uint32_t Tables::prefix(std::uint32_t stack) const {
    if (stack_prefix_offset.empty()) return at(stack_prefix, stack);
    const std::uint32_t offset = at(stack_prefix_offset, stack);
    return offset == 0 || offset > stack ? none : stack - offset;
}

bool Tables::inlined(std::uint32_t frame) const {
    if (!frame_flags.empty()) return (at(frame_flags, frame) & is_inlined) != 0;
    const std::uint32_t depth = at(frame_inline_depth, frame);
    return depth != 0 && depth != none;
}

std::uint32_t Tables::library(std::uint32_t frame) const {
    if (const std::uint32_t one = at(resource_library, resource(at(frame_func, frame))); one != none) return one;
    if (const std::uint32_t one = flagged(frame_library, frame_flags, has_address, frame); one != none) return one;
    return at(native_symbol_library, flagged(frame_native_symbol, frame_flags, has_native_symbol, frame));
}

std::uint32_t Tables::library_name(std::uint32_t frame) const {
    constexpr std::uint32_t library_type = 1;
    const std::uint32_t one = resource(at(frame_func, frame));
    return at(resource_type, one) == library_type ? at(resource_name, one) : none;
}

std::uint32_t Tables::file(std::uint32_t func, const Tables& shared) const {
    if (!func_file.empty()) return at(func_file, func);
    return at(shared.source_file, flagged(func_source, func_flags, has_source, func));
}

Result<Profile> read(ImportJob& job) {
    static const JsonShape shape = make_shape();
    Collector collector;
    const JsonEnd end = TRY(read_json(job, shape, collector));
    if (end == JsonEnd::cut)
        return fail(ErrorCode::invalid, "the Firefox profile ends too early: fetch or export it again");
    if (end == JsonEnd::stopped || collector.profile.threads.empty())
        return fail(ErrorCode::invalid, "the Firefox profile has no threads in it, or not in its format");
    return std::move(collector.profile);
}

}  // namespace flamewire::profile::firefox_format
