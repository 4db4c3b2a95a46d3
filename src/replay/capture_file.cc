#include "replay/capture_file.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/varint.h"
#include "wire/frame.h"

namespace flamewire::replay {

using agent::Call;

namespace {

constexpr std::size_t chunk_header_bytes = 4;
// Estimated cost of an entry in the tables.
constexpr std::size_t entry_overhead_bytes = 64;

std::string key_of(Call call, std::string_view arguments) {
    std::string key(1, static_cast<char>(call));
    key += arguments;
    return key;
}

}  // namespace

Result<CaptureFile> CaptureFile::read(const std::string& path) {
    const std::string bytes = TRY(read_file(path, std::size_t{512} << 20));
    auto capture = of_bytes(bytes);
    if (!capture) return fail(capture.error().code, path + ": " + capture.error().message);
    return capture;
}

Result<CaptureFile> CaptureFile::of_bytes(std::string_view bytes) {
    if (!bytes.starts_with(agent::capture_magic)) return fail(ErrorCode::invalid, "not a capture of flamewire-agent");
    CaptureFile capture;
    ByteReader in(as_bytes_view(bytes.substr(agent::capture_magic.size())));
    while (in.remaining() >= chunk_header_bytes) {
        const Bytes head = in.bytes(chunk_header_bytes);
        std::uint32_t size = 0;
        for (std::size_t i = 0; i < chunk_header_bytes; ++i) size |= std::to_integer<std::uint32_t>(head[i]) << (8 * i);
        if (size > in.remaining()) break;
        std::string chunk = TRY(wire::decompress(in.bytes(size), agent::max_capture_chunk_bytes));
        (void)TRY(capture.take_chunk(std::move(chunk)));
    }
    if (in.remaining() != 0 && !capture.truncated_) capture.truncated_ = "the file is cut off";
    return capture;
}

Result<bool> CaptureFile::take_chunk(std::string chunk) {
    memory_bytes_ += chunk.size();
    const std::string& kept = *chunks_.emplace_back(std::make_unique<std::string>(std::move(chunk)));
    ByteReader in(as_bytes_view(kept));
    while (in.remaining() != 0) {
        const auto call = static_cast<Call>(in.u8());
        const std::uint64_t arguments_bytes = read_varint(in);
        const std::string_view arguments = as_text(in.bytes(static_cast<std::size_t>(arguments_bytes)));
        const std::uint64_t result_bytes = read_varint(in);
        const std::string_view result = as_text(in.bytes(static_cast<std::size_t>(result_bytes)));
        if (!in.ok()) return fail(ErrorCode::invalid, "damaged capture: an entry exceeds its chunk");
        memory_bytes_ += entry_overhead_bytes + arguments.size();
        if (memory_bytes_ > max_capture_memory_bytes)
            return fail(ErrorCode::too_large, "the capture exceeds the limit of 2 GiB in memory");
        ++entries_;
        if (call == Call::perf_poll) ++rounds_;
        if (call == Call::truncated) truncated_ = std::string(result);
        if (call == Call::read_at) {
            ByteReader which(as_bytes_view(arguments));
            const std::uint64_t handle = read_varint(which);
            const std::uint64_t offset = read_varint(which);
            ByteReader bytes(as_bytes_view(result));
            if (from_zigzag(read_varint(bytes)) > 0 && bytes.ok())
                file_chunks_[handle].emplace_back(offset, as_text(bytes.bytes(bytes.remaining())));
        }
        results_[key_of(call, arguments)].push_back({rounds_, result});
    }
    return true;
}

const std::vector<CallResult>& CaptureFile::results(Call call, std::string_view arguments) const {
    static const std::vector<CallResult> none;
    const auto found = results_.find(key_of(call, arguments));
    return found == results_.end() ? none : found->second;
}

const std::vector<std::pair<std::uint64_t, std::string_view>>& CaptureFile::file_chunks(std::uint64_t handle) const {
    static const std::vector<std::pair<std::uint64_t, std::string_view>> none;
    const auto found = file_chunks_.find(handle);
    return found == file_chunks_.end() ? none : found->second;
}

}  // namespace flamewire::replay
