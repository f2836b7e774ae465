// The tables of a trace in SQLite: those of Nsight Systems' export (schema 3.25.0) with columns of ours at their ends,
// and our own.
#pragma once

namespace decodelab {

/// The version of nsys' schema whose tables and columns are followed. META_DATA_EXPORT says who wrote the file, which
/// is not NVIDIA.
inline constexpr const char* kNsysShape = "3.25.0";
/// META_DATA_EXPORT's row EXPORTER.
inline constexpr const char* kExporter = "decodelab";

/// The tables. Columns that nsys has hold -1 and 0 where nsys writes them; columns of ours are NULL where there is
/// nothing to say.
inline constexpr const char* kTraceTables = R"sql(
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE THREAD (globalTid INTEGER PRIMARY KEY, process INTEGER NOT NULL, thread INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER,
  l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER,
  uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
  registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER,
  qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER,
  clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER,
  maxActiveClusters INTEGER, lane INTEGER, step INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
  srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
  graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER, graphId INTEGER, nameId INTEGER, lane INTEGER,
  step INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER, graphId INTEGER, nameId INTEGER,
  lane INTEGER, step INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  graphId INTEGER NOT NULL, graphExecId INTEGER, nameId INTEGER, lane INTEGER, step INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER,
  callbackId INTEGER, kind TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, overheadType INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
  color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
  int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData TEXT, kind TEXT, step INTEGER, layer INTEGER, stage TEXT, depth INTEGER, allocations INTEGER,
  allocatedBytes INTEGER, expectedBytes INTEGER, expectedFlops INTEGER, ownEnd INTEGER);
CREATE TABLE COUNTER (time INTEGER NOT NULL, seriesId INTEGER NOT NULL, value REAL);
CREATE TABLE STEP (step INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, batch INTEGER, keys INTEGER,
  launches INTEGER, graphLaunches INTEGER, timerNs INTEGER, excludedReason TEXT, deviceStart INTEGER, deviceEnd INTEGER,
  spanNs INTEGER, busyNs INTEGER, residualNs INTEGER, hostMarginNs INTEGER, launchToStartNs INTEGER, operators INTEGER,
  graphKernelNs INTEGER);
CREATE TABLE GAP (step INTEGER, deviceId INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, cause TEXT NOT NULL,
  nextStart INTEGER, nextName TEXT);
CREATE TABLE NODE (graphId INTEGER NOT NULL, nodeId INTEGER NOT NULL, originalNodeId INTEGER, layer INTEGER, stage TEXT);
CREATE TABLE QUALITY (id TEXT, title TEXT, status TEXT NOT NULL, value REAL, threshold REAL, evidence TEXT);
)sql";

/// The indexes. nsys makes none, and joins on millions of rows then take minutes.
inline constexpr const char* kTraceIndexes = R"sql(
CREATE INDEX kernel_start ON CUPTI_ACTIVITY_KIND_KERNEL(start);
CREATE INDEX kernel_correlation ON CUPTI_ACTIVITY_KIND_KERNEL(correlationId);
CREATE INDEX memcpy_start ON CUPTI_ACTIVITY_KIND_MEMCPY(start);
CREATE INDEX memcpy_correlation ON CUPTI_ACTIVITY_KIND_MEMCPY(correlationId);
CREATE INDEX memset_start ON CUPTI_ACTIVITY_KIND_MEMSET(start);
CREATE INDEX memset_correlation ON CUPTI_ACTIVITY_KIND_MEMSET(correlationId);
CREATE INDEX graph_start ON CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start);
CREATE INDEX graph_correlation ON CUPTI_ACTIVITY_KIND_GRAPH_TRACE(correlationId);
CREATE INDEX runtime_start ON CUPTI_ACTIVITY_KIND_RUNTIME(start);
CREATE INDEX runtime_correlation ON CUPTI_ACTIVITY_KIND_RUNTIME(correlationId);
CREATE INDEX synchronization_start ON CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start);
CREATE INDEX synchronization_correlation ON CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(correlationId);
CREATE INDEX overhead_start ON CUPTI_ACTIVITY_KIND_OVERHEAD(start);
CREATE INDEX nvtx_start ON NVTX_EVENTS(start);
CREATE INDEX step_start ON STEP(start);
CREATE INDEX gap_start ON GAP(start);
)sql";

}  // namespace decodelab
