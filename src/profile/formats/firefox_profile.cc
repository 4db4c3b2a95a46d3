#include "profile/formats/firefox_profile.h"

#include <utility>

#include "profile/formats/json_fields.h"

namespace flamewire::profile::firefox_format {
namespace {

// Process and thread ids are numbers or text.
std::uint32_t id_of(const JsonValue& value) {
    if (value.kind != JsonValue::Kind::text) return static_cast<std::uint32_t>(value.whole(none - 1, 0));
    std::uint64_t sum = 0;
    for (const char c : value.text) {
        if (c < '0' || c > '9') break;
        sum = sum * 10 + static_cast<std::uint64_t>(c - '0');
        if (sum >= none) return 0;
    }
    return static_cast<std::uint32_t>(sum);
}

struct Reader {
    Profile profile;
    bool in_thread = false;

    Profile& current(Profile* /*type*/) { return profile; }
    ThreadColumns& current(ThreadColumns* /*type*/) { return profile.threads.back(); }
    Tables& current(Tables* /*type*/) { return in_thread ? profile.threads.back().tables : profile.shared; }
    Library& current(Library* /*type*/) { return libraries().back(); }
    std::vector<Library>& libraries() { return in_thread ? profile.threads.back().libraries : profile.libraries; }
};

using Field = JsonField<Reader>;

std::vector<Field> library_fields() {
    return {
        {"", nullptr, [](Reader& in) { in.libraries().emplace_back(); }},
        {".path", set<&Library::path>},
        {".name", set<&Library::name>},
        {".debugName", set<&Library::debug_name>},
        {".codeId", set<&Library::code_id>},
        {".breakpadId", set<&Library::debug_id>},
    };
}

std::vector<Field> table_fields() {
    return {
        {".stringArray[]", set<&Tables::texts>},
        {".stackTable.prefix[]", set<&Tables::stack_prefix>},
        {".stackTable.prefixOffset[]", set<&Tables::stack_prefix_offset>},
        {".stackTable.frame[]", set<&Tables::stack_frame>},
        {".frameTable.func[]", set<&Tables::frame_func>},
        {".frameTable.line[]", set<&Tables::frame_line>},
        {".frameTable.inlineDepth[]", set<&Tables::frame_inline_depth>},
        {".frameTable.flags[]", set<&Tables::frame_flags>},
        {".frameTable.address[]", set<&Tables::frame_address>},
        {".frameTable.lib[]", set<&Tables::frame_library>},
        {".frameTable.nativeSymbol[]", set<&Tables::frame_native_symbol>},
        {".funcTable.name[]", set<&Tables::func_name>},
        {".funcTable.fileName[]", set<&Tables::func_file>},
        {".funcTable.source[]", set<&Tables::func_source>},
        {".funcTable.flags[]", set<&Tables::func_flags>},
        {".funcTable.resource[]", set<&Tables::func_resource>},
        {".resourceTable.lib[]", set<&Tables::resource_library>},
        {".resourceTable.name[]", set<&Tables::resource_name>},
        {".resourceTable.type[]", set<&Tables::resource_type>},
        {".nativeSymbols.libIndex[]", set<&Tables::native_symbol_library>},
        {".sources.filename[]", set<&Tables::source_file>},
    };
}

std::vector<Field> make_fields() {
    std::vector<Field> all{
        {"meta.preprocessedProfileVersion", set<&Profile::version>},
        {"meta.symbolicated",
         [](Reader& in, const JsonValue& value) {
             in.profile.symbolicated = value.kind != JsonValue::Kind::boolean || value.number != 0;
         }},
        {"meta.product", set<&Profile::product>},
        {"meta.startTime", set<&Profile::start_ms>},
        {"meta.profilingStartTime", set<&Profile::profiling_start_ms>},
        {"threads[]", nullptr,
         [](Reader& in) {
             in.profile.threads.emplace_back();
             in.in_thread = true;
         },
         [](Reader& in) { in.in_thread = false; }},
        {"threads[].name", set<&ThreadColumns::name>},
        {"threads[].pid", [](Reader& in, const JsonValue& value) { in.profile.threads.back().pid = id_of(value); }},
        {"threads[].tid", [](Reader& in, const JsonValue& value) { in.profile.threads.back().tid = id_of(value); }},
        {"threads[].samples.stack[]", set<&ThreadColumns::stacks>},
        {"threads[].samples.time[]", set<&ThreadColumns::times_ms>},
        {"threads[].samples.timeDeltas[]", set<&ThreadColumns::deltas_ms>},
        {"threads[].samples.weight[]", set<&ThreadColumns::weights>},
        {"threads[].samples.duration[]", set<&ThreadColumns::weights>},  // before version 29
        {"threads[].samples.weightType", set<&ThreadColumns::weight_type>},
        {"threads[].flamewire.event", set<&ThreadColumns::own_event>},
        {"threads[].flamewire.unit", set<&ThreadColumns::own_unit>},
        {"threads[].flamewire.comm", set<&ThreadColumns::own_comm>},
        {"threads[].flamewire.samples[]", set<&ThreadColumns::own_samples>},
        {"threads[].flamewire.weights[]", set<&ThreadColumns::own_weights>},
        {"threads[].flamewire.returns[]", set<&ThreadColumns::own_returns>},
    };
    // Before version 41, libraries belong to a thread.
    for (const char* in : {"libs[]", "threads[].libs[]"}) append(all, in, library_fields());
    // Strings belong to a thread before version 56, all other tables except sources before version 60. Sources are
    // always shared.
    for (const char* in : {"threads[]", "shared"}) append(all, in, table_fields());
    return all;
}

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
    static const std::vector<Field> fields = make_fields();
    Reader reader;
    const JsonEnd end = TRY(JsonFields(fields, reader).read(job));
    if (end == JsonEnd::cut)
        return fail(ErrorCode::invalid, "the Firefox profile ends too early: fetch or export it again");
    if (end == JsonEnd::stopped || reader.profile.threads.empty())
        return fail(ErrorCode::invalid, "the Firefox profile has no threads in it, or not in its format");
    return std::move(reader.profile);
}

}  // namespace flamewire::profile::firefox_format
