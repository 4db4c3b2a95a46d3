// Imports files of other tools. Each format is a file in this folder and an entry of import_formats(). A file's format
// is detected by its content, never by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/formats/recording_builder.h"
#include "symbol/types/module_identity.h"
#include "wire/batch.h"

namespace flamewire::profile {

// The bytes of a file.
class ImportSource {
public:
    virtual ~ImportSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Fills `into` with the bytes from `offset` on and returns their number, which is smaller only at the end of the
    // file.
    virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) = 0;
};

// The import of one file into one recording.
class ImportJob {
public:
    virtual ~ImportJob() = default;
    [[nodiscard]] virtual ImportSource& source() = 0;
    // The file's name for people. It is the recording's target if the format does not have one.
    [[nodiscard]] virtual const std::string& name() const = 0;
    // Call this once, after the header is read and the content is confirmed to be in the format. `about.target`: "" for
    // name(). `realtime_ns`: the wall clock at about.start_ns; 0: unknown.
    virtual RecordingBuilder& begin(wire::Recording about, std::int64_t realtime_ns) = 0;
    // The file on this machine that has the code of a module, for importers that unwind stacks. Empty: there is none.
    [[nodiscard]] virtual std::string module_file(const symbol::ModuleIdentity& module) = 0;
    // The path of a target's file below the sysroot that the user gave. Empty: no sysroot was given.
    [[nodiscard]] virtual std::string in_sysroot(std::string_view /*path*/) { return {}; }
    // Call this before allocating that many bytes at once. too_large: the import may not use them, so end it.
    [[nodiscard]] virtual Result<bool> make_room(std::uint64_t /*bytes*/) { return true; }
    // Reports how much of the source has been read. Rare calls are sufficient.
    virtual void progress(std::uint64_t read_bytes) = 0;
};

struct ImportFormat {
    std::string_view name;   // as in --format: "collapsed"
    std::string_view title;  // in a sentence, plural: "folded stacks (\"outer;inner count\")"
    // `beginning`: at least 64 KiB of the file, or all of it.
    bool (*recognises)(std::string_view beginning);
    // Reads the whole file. Content that Flamewire does not show is noted in the builder. invalid: one sentence that
    // states what is wrong and where. A truncated file is imported up to the truncation, with a note; speedscope and
    // Firefox profiles are invalid then.
    Result<bool> (*import)(ImportJob& job);
};

// In the order in which detection tries them.
std::span<const ImportFormat> import_formats();
const ImportFormat* recognise_import(std::string_view beginning);

// Calls `each` with successive pieces of the source and reports the job's progress.
Result<bool> read_through(ImportJob& job, const std::function<Result<bool>(std::string_view piece)>& each);

}  // namespace flamewire::profile
